package chainindex

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// heldUp runs an operation on a key that comes as far as the key's latch, then
// what happens meanwhile with the key latched, and lets the operation go on. If
// the machine is so slow that it does not come that far, the test sees less.
func heldUp(x *Index, key string, operation, meanwhile func()) {
	latch := x.latches.of([]byte(key))
	latch.Lock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		operation()
	}()
	time.Sleep(20 * time.Millisecond)
	meanwhile()
	latch.Unlock()
	<-done
}

// movingToFile returns an index in which (key, 1) is frozen, and what makes it
// move to a file.
func (r *rig) movingToFile(key string) (x *Index, publish func()) {
	x = r.create()
	r.session(x).insert(key, 1)
	c, create := r.begin(x)
	_, err := c.Write(context.Background(), create)
	require.NoError(r.t, err)
	return x, c.Published
}

func TestInsertStartsOverWhenFilesChange(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, publish := r.movingToFile("key")
	s, asked := r.session(x), collect{}
	heldUp(x, "key", func() { require.NoError(t, s.tryInsert("key", 2, asked)) }, publish)
	require.Equal(t, collect{1: true}, asked)
}

func TestRemoveStartsOverWhenFilesChange(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, publish := r.movingToFile("key")
	s := r.session(x)
	heldUp(x, "key", func() { require.True(t, s.remove("key", 1)) }, publish)
	require.Empty(t, s.lookup("key"))
}

// A writer that waited for the latch while the head was frozen writes into the
// new one, over what others have put there.
func TestWriterThatWaitedUsesTheNewHead(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x := r.create()
	s, other := r.session(x), r.session(x)
	s.insert("key", 1)
	old, frozen := x.chain.Load(), make(chan struct{})
	heldUp(x, "key", func() { s.insert("key", 1) }, func() {
		go func() { // it waits for the writer, which is pinned
			defer close(frozen)
			c, _ := r.begin(x)
			c.Abandon()
		}()
		require.Eventually(t, func() bool { return x.chain.Load() != old }, 10*time.Second, time.Millisecond)
		other.h.Pin()
		require.NoError(t, x.leave(other.h, x.chain.Load().head(), []byte("key"), row(1), 0, isLive))
		other.h.Unpin()
	})
	<-frozen
	require.Equal(t, []rowid.ID{row(1)}, s.lookup("key"), "the insertion came after the removal")
}

// Neither a checkpoint nor a follower begins while an operation may be under way
// that does not know of it.
func TestOperationsInFlightAreWaitedFor(t *testing.T) {
	for name, begin := range map[string]func(*rig, *Index){
		"checkpoint": func(r *rig, x *Index) {
			c, _ := r.begin(x)
			c.Abandon()
		},
		"snapshot": func(r *rig, x *Index) { r.snapshot(x).Close() },
		"follow": func(r *rig, x *Index) {
			tree, err := btree.New(TreeConfig(&r.spec))
			require.NoError(r.t, err)
			require.NoError(r.t, x.Follow(context.Background(), tree))
			x.Unfollow()
			require.NoError(r.t, tree.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOn(t, vfs.NewMem(), "/")
			x := r.create()
			r.session(x).insert("key", 1)
			h := r.domain.Register()
			h.Pin()
			done := make(chan struct{})
			go func() {
				defer close(done)
				begin(r, x)
			}()
			select {
			case <-done:
				t.Error("it did not wait")
			case <-time.After(30 * time.Millisecond):
			}
			h.Unpin()
			<-done
		})
	}
}

// A head that a snapshot freezes during a capture stays when that is published.
func TestSnapshotDuringCapture(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, publish := r.movingToFile("key")
	s := r.session(x)
	s.insert("key", 2)
	snapshot := r.snapshot(x)
	s.insert("key", 3)
	publish()
	require.Len(t, s.lookup("key"), 3)
	require.Len(t, x.chain.Load().frozen(), 1)
	snapshot.Close()
	require.Len(t, r.session(r.open(r.checkpoint(x))).lookup("key"), 3)
}

// lossy writes something else than it is told.
type lossy struct{ vfs.File }

func (f lossy) WriteAt(p []byte, off int64) (int, error) {
	q := append([]byte(nil), p...)
	q[len(q)/2] ^= 4
	return f.File.WriteAt(q, off)
}

// A file is read back before it counts.
func TestLossyMediumIsNoticed(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	x, s := r.aged("key", 1)
	s.insert("key", 2)
	c, create := r.begin(x)
	_, err := c.Write(context.Background(), func(ext string) (vfs.File, error) {
		f, err := create(ext)
		return lossy{f}, err
	})
	require.True(t, typed(err), "%v", err)
	c.Abandon()
	require.Len(t, r.session(r.open(r.checkpoint(x))).lookup("key"), 2)
}
