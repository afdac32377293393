package chainindex

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// typed reports whether err is what a damaged file may give.
func typed(err error) bool {
	var file *fault.File
	if !errors.As(err, &file) || file.Path == "" {
		return false
	}
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrFormat) || errors.Is(err, fault.ErrForeignFile)
}

// smallChain writes two small files: entries with short and long keys, several
// levels, tombstones. It returns them newest first, and what they hold.
func smallChain(r *rig) ([]index.FileInfo, *indextest.Model) {
	x, m := r.create(), &indextest.Model{}
	x.plan = lagging
	s := r.session(x)
	add := func(key string, n int) {
		m.Insert(indextest.Entry{Key: key, Row: row(n)})
		s.insert(key, n)
	}
	for i := range 100 {
		add(fmt.Sprintf("key %04d of some length", i), 1)
	}
	add(strings.Repeat("a long key ", 200), 3)
	r.checkpoint(x)
	for i := range 20 {
		require.True(r.t, m.Remove(indextest.Entry{Key: fmt.Sprintf("key %04d of some length", 4*i), Row: row(1)}))
		require.True(r.t, s.remove(fmt.Sprintf("key %04d of some length", 4*i), 1))
		add(fmt.Sprintf("key %04d of some length", 3*i), 2)
	}
	files := r.checkpoint(x)
	require.Len(r.t, files, 2)
	return files, m
}

// survives opens files that may be damaged and reads all of them in all ways.
// Each way gives the right answer or a typed error; it returns one of the errors.
func survives(r *rig, files []index.FileInfo, m *indextest.Model) (damage error) {
	x, err := Open(context.Background(), r.spec, files)
	if err != nil {
		require.True(r.t, typed(err), "open: %v", err)
		return err
	}
	defer func() { require.NoError(r.t, x.Close()) }()
	s := r.session(x)
	note := func(err error) bool {
		if err != nil {
			require.True(r.t, typed(err), "%v", err)
			damage = err
		}
		return err == nil
	}
	for _, rng := range []index.Range{{}, {Reverse: true}} {
		if got, err := s.tryScan(rng, 64); note(err) {
			require.True(r.t, slices.Equal(m.Behind(rng, &index.Cursor{}), got))
		}
	}
	for i := 0; i < 100; i += 20 {
		key := fmt.Sprintf("key %04d of some length", i)
		if got, err := s.tryLookup(key); note(err) {
			require.True(r.t, slices.Equal(m.Rows(key), got))
		}
	}
	asked := collect{}
	if note(s.tryInsert("key 0003 of some length", 1000, asked)) {
		require.Equal(r.t, len(m.Rows("key 0003 of some length")), len(asked))
	}
	s.h.Pin()
	removed, err := x.Remove(s.h, []byte("key 0006 of some length"), row(1), always)
	s.h.Unpin()
	if note(err) {
		require.True(r.t, removed)
	}
	return damage
}

// verifyAll is what the verifier does, at once.
func verifyAll(x *Index) error {
	var errs []error
	for _, l := range x.chain.Load().files() {
		errs = append(errs, x.verify(context.Background(), l.file, 0))
	}
	return errors.Join(errs...)
}

func (r *rig) read(name string) []byte {
	b, err := vfs.ReadFile(r.fs, name, 1<<30)
	require.NoError(r.t, err)
	return b
}

func (r *rig) replace(name string, content []byte) {
	require.NoError(r.t, r.fs.Remove(name))
	f, err := r.fs.Create(name)
	require.NoError(r.t, err)
	_, err = f.WriteAt(content, 0)
	require.NoError(r.t, err)
	require.NoError(r.t, f.Close())
}

// stride thins out tests that try every byte where all is slow.
func stride() int {
	if invariants.Enabled {
		return 97
	}
	return 1
}

func TestEveryFlippedByte(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	require.NoError(t, survives(r, files, m))
	for _, info := range files {
		content := r.read(info.Name)
		for at := 0; at < len(content); at += stride() {
			if at > headerFields+64 && at < headerSize-64 {
				continue // zeros; those at both ends are tried
			}
			damaged := slices.Clone(content)
			damaged[at] ^= 1 << (at % 8)
			r.replace(info.Name, damaged)
			damage := survives(r, files, m)
			if at < headerFields || at >= headerSize {
				require.Error(t, damage, "%s, offset %d", info.Name, at)
			}
			if at%64 == 0 {
				x, err := Open(context.Background(), r.spec, files)
				if err == nil {
					require.True(t, typed(verifyAll(x)), "every byte is verified")
					require.NoError(t, x.Close())
				}
				r.domain.Reclaim()
			}
		}
		r.replace(info.Name, content)
	}
	require.NoError(t, survives(r, files, m))
}

func TestEveryLength(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	for i, info := range files {
		content := r.read(info.Name)
		for length := 0; length < len(content)+9; length += stride() {
			if length == len(content) {
				continue
			}
			r.replace(info.Name, append(slices.Clone(content), make([]byte, 9)...)[:length])
			require.True(t, typed(survives(r, files, m)))
			claimed := slices.Clone(files)
			claimed[i].Size = int64(length)
			require.True(t, typed(survives(r, claimed, m)))
		}
		r.replace(info.Name, content)
	}
}

// Sectors that are zero although they were written, or hold what belongs
// elsewhere.
func TestEveryLostSector(t *testing.T) {
	const sector = 512
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	for _, info := range files {
		content := r.read(info.Name)
		for at := 0; at < len(content); at += sector {
			damaged := slices.Clone(content)
			part := damaged[at:min(at+sector, len(damaged))]
			clear(part)
			r.replace(info.Name, damaged)
			survives(r, files, m)
			copy(part, content[(at+nodeSize)%len(content):])
			r.replace(info.Name, damaged)
			survives(r, files, m)
		}
		r.replace(info.Name, content)
	}
}

// Nodes that are valid each by itself, in the place of others.
func TestSwappedNodes(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	content := r.read(files[1].Name)
	nodes := (len(content) - headerSize - footerSize) / nodeSize
	require.Greater(t, nodes, 4)
	for a := range nodes {
		for b := range a {
			damaged := slices.Clone(content)
			copy(damaged[headerSize+a*nodeSize:][:nodeSize], content[headerSize+b*nodeSize:])
			copy(damaged[headerSize+b*nodeSize:][:nodeSize], content[headerSize+a*nodeSize:])
			r.replace(files[1].Name, damaged)
			require.True(t, typed(survives(r, files, m)))
		}
	}
}

// Files that are sound each by itself but do not belong together.
func TestFilesThatDoNotBelongTogether(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	open := func(spec index.Spec, files ...index.FileInfo) error {
		x, err := Open(context.Background(), spec, files)
		if err == nil {
			require.NoError(t, x.Close())
		}
		return err
	}
	r.domain.Reclaim()
	handles := r.fs.(*vfs.Mem).Handles()
	require.NoError(t, open(r.spec, files[1], files[0]), "the order does not matter")
	require.NoError(t, open(r.spec, files[1]), "the checkpoint before")
	require.ErrorIs(t, open(r.spec, files[0]), fault.ErrCorrupt, "the older file is missing from the list")
	require.ErrorIs(t, open(r.spec, files[0], files[0], files[1]), fault.ErrCorrupt)
	for name, c := range map[string]struct {
		change func(s *index.Spec, f []index.FileInfo)
		want   error
	}{
		"database":   {func(s *index.Spec, _ []index.FileInfo) { s.DatabaseID[15]++ }, fault.ErrForeignFile},
		"table":      {func(s *index.Spec, _ []index.FileInfo) { s.Table++ }, fault.ErrCorrupt},
		"index":      {func(s *index.Spec, _ []index.FileInfo) { s.Number++ }, fault.ErrCorrupt},
		"checkpoint": {func(_ *index.Spec, f []index.FileInfo) { f[0].Checkpoint++ }, fault.ErrCorrupt},
		"name":       {func(_ *index.Spec, f []index.FileInfo) { f[0].Name = f[1].Name }, fault.ErrCorrupt},
		"size":       {func(_ *index.Spec, f []index.FileInfo) { f[0].Size += nodeSize }, fault.ErrCorrupt},
		"older sum":  {func(_ *index.Spec, f []index.FileInfo) { f[1].Sum++ }, fault.ErrCorrupt},
		"missing":    {func(_ *index.Spec, f []index.FileInfo) { f[1].Name += "x" }, fault.ErrMissingFile},
	} {
		t.Run(name, func(t *testing.T) {
			spec, list := r.spec, slices.Clone(files)
			c.change(&spec, list)
			err := open(spec, list...)
			require.ErrorIs(t, err, c.want)
			var file *fault.File
			require.ErrorAs(t, err, &file)
		})
	}
	require.NoError(t, survives(r, files, m))
	r.domain.Reclaim()
	require.Equal(t, handles, r.fs.(*vfs.Mem).Handles(), "nothing stays open")
}

func TestUnknownVersionIsRefused(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, m := smallChain(r)
	content := r.read(files[0].Name)
	content[8] = formatVersion + 1
	r.replace(files[0].Name, content)
	require.ErrorIs(t, survives(r, files, m), fault.ErrFormat)
}

// A mapped file that cannot be read is an error of the call, not a crash, also
// where it had been read before.
func TestFaultInMappingIsAnError(t *testing.T) {
	if !vfs.MapsFiles || runtime.GOOS != "linux" {
		t.Skip("needs a mapping whose file can be cut")
	}
	if invariants.Enabled {
		t.Skip("files are not mapped where the race detector looks on")
	}
	r := newRig(t)
	files, _ := smallChain(r)
	touched, untouched := r.open(files), r.open(files)
	require.Len(t, r.session(touched).lookup("key 0003 of some length"), 2)
	for _, info := range files {
		require.NoError(t, os.Truncate(info.Name, 0))
	}
	for _, x := range []*Index{touched, untouched} {
		s := r.session(x)
		_, err := s.tryLookup("key 0003 of some length")
		require.True(t, typed(err), "%v", err)
		_, err = s.tryScan(index.Range{}, 10)
		require.True(t, typed(err), "%v", err)
		require.True(t, typed(s.tryInsert("key 0003 of some length", 7, collect{})))
		s.insert("key 0003 of some length", 7) // needs no file
	}
}

// Damage that the verifier finds is reported, and the file is left out of
// merges.
func TestVerifierReportsDamage(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, _ := smallChain(r)
	content := r.read(files[1].Name)
	content[headerSize+100]++
	r.replace(files[1].Name, content)
	log := &syncBuffer{}
	r.spec.Logger = slog.New(slog.NewTextHandler(log, nil))
	x := r.open(files)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "damaged") }, 10*time.Second, time.Millisecond)
	require.Contains(t, log.String(), files[1].Name)
	require.Contains(t, log.String(), r.spec.Name)
	s := r.session(x)
	for i := range 1000 {
		s.insert(fmt.Sprintf("new %d", i), 1)
	}
	require.Len(t, r.checkpoint(x), 2, "the sound file is merged, the damaged one is not")
	require.Len(t, s.lookup("new 7"), 1)
}

// A merge that meets damage fails; the next checkpoint goes round it.
func TestCheckpointMeetsDamage(t *testing.T) {
	r := newRigOn(t, vfs.NewMem(), "/")
	files, _ := smallChain(r)
	content := r.read(files[0].Name)
	content[headerSize+100]++
	r.replace(files[0].Name, content)
	x := r.open(files)
	x.stop() // the verifier, which may find it too
	s := r.session(x)
	s.insert("new", 1)
	x.plan = func(fresh int64, files []*layer) int { return intact(files) }
	c, create := r.begin(x)
	_, err := c.Write(context.Background(), create)
	c.Abandon()
	if !x.chain.Load().files()[0].file.damaged.Load() {
		t.Fatal("not noticed")
	}
	require.True(t, err == nil || typed(err), "%v", err)
	require.Len(t, r.checkpoint(x), 3)
	require.Equal(t, []rowid.ID{row(1)}, s.lookup2(t, "new"))
}

// lookup2 is a lookup that damaged files do not concern, in the head.
// TestCheckpointMeetsLateDamage: a node that has changed since it was first used is
// not merged.
func TestCheckpointMeetsLateDamage(t *testing.T) {
	if !vfs.MapsFiles {
		t.Skip("needs a mapping")
	}
	r := newRig(t)
	files, m := smallChain(r)
	x := r.open(files)
	x.plan = func(_ int64, files []*layer) int { return len(files) }
	s := r.session(x)
	s.equals(m)
	s.insert("one more", 9)
	f, err := r.fs.Open(files[len(files)-1].Name)
	require.NoError(t, err)
	_, err = f.WriteAt(r.read(files[len(files)-1].Name)[nodeSize:2*nodeSize], 2*nodeSize)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	p, create := r.begin(x)
	_, err = p.Write(t.Context(), create)
	require.True(t, typed(err), "%v", err)
	p.Abandon()
}

func (s *session) lookup2(t *testing.T, key string) []rowid.ID {
	layers := s.x.(*Index).chain.Load().layers
	s.h.Pin()
	places, err := layers[1].lookup(s.h, []byte(key), nil)
	s.h.Unpin()
	require.NoError(t, err)
	for i, p := range places {
		places[i] = rowid.Make(testTable, placeOrdinal(p))
	}
	return places
}

func TestOpenReadsNothing(t *testing.T) {
	mem := vfs.NewMem()
	r := newRigOn(t, mem, "/")
	files, m := smallChain(r)
	r.domain.Reclaim()
	handles := mem.Handles()
	for range 100 {
		x, err := Open(context.Background(), r.spec, files)
		require.NoError(t, err)
		for _, l := range x.chain.Load().files() {
			for id := range l.file.footer.nodes {
				require.False(t, l.file.checked.has(id+1))
			}
		}
		require.NoError(t, x.Close(), "at once")
	}
	require.NoError(t, survives(r, files, m))
	r.domain.Reclaim()
	require.Equal(t, handles, mem.Handles())
}
