package rekindle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// interleavings calls f with every merge of the given sequences.
func interleavings(done []string, sequences [][]string, f func([]string)) {
	last := true
	for i, s := range sequences {
		if len(s) == 0 {
			continue
		}
		last = false
		rest := slices.Clone(sequences)
		rest[i] = s[1:]
		interleavings(append(slices.Clip(done), s[0]), rest, f)
	}
	if last {
		f(done)
	}
}

// TestRelocationInterleavings moves the record of a row while transactions
// update, delete and replace that row, in every order of the steps, with the row
// in memory and in the log, and a power cut after every step. The row must be what
// the transactions have made of it, for those who are there and after a recovery;
// and nobody may be left who needs the old record.
func TestRelocationInterleavings(t *testing.T) {
	relocation := []string{"append", "apply"}
	for _, others := range [][][]string{
		{{"update", "commit"}},
		{{"update", "rollback"}},
		{{"delete", "commit"}},
		{{"delete", "rollback"}},
		{{"update", "commit", "update", "commit"}},
		{{"update", "commit", "delete", "commit"}},
		{{"delete", "insert", "commit"}},
		{{"delete", "commit", "insert", "commit"}},
		{{"update", "commit"}, {"reader"}},
		{{"read"}},
		{{"update", "commit"}, {"read"}},
	} {
		interleavings(nil, append(others, relocation), func(steps []string) {
			for _, cold := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s,cold=%v", strings.Join(steps, ","), cold), func(t *testing.T) {
					newRelocationTest(t, cold).run(steps)
				})
			}
		})
	}
}

type relocationTest struct {
	t      *testing.T
	fs     *vfs.Mem
	db     *rekindle.DB
	items  *rekindle.Table[item]
	move   *rekindle.Relocation
	tx     *rekindle.Tx
	reader *rekindle.Tx // sees the row as it was before

	value   int32 // what the next update writes
	pending *item // in tx, nil for none
	want    *item // committed
	seen    *item // by reader
}

func newRelocationTest(t *testing.T, cold bool) *relocationTest {
	r := &relocationTest{t: t, fs: vfs.NewMem(), want: &item{ID: 1, Name: "1"}}
	o := rekindle.Options{CheckpointBytes: -1, IndexStrategy: "rebuild"}
	r.db, r.items = openItems(t, r.fs, o)
	update(t, r.db, func(tx *rekindle.Tx) { require.NoError(t, r.items.Insert(tx, r.want)) })
	require.NoError(t, r.db.Checkpoint(t.Context()))
	if cold {
		require.NoError(t, r.db.Close(t.Context()))
		r.db, r.items = openItems(t, r.fs, o)
	}
	var err error
	r.move, err = rekindle.NewRelocation(r.db, "items")
	require.NoError(t, err)
	return r
}

func (r *relocationTest) run(steps []string) {
	applied := false
	for i, step := range steps {
		r.step(step)
		if applied = applied || step == "apply"; applied {
			dead, err := r.move.Dead()
			require.NoError(r.t, err)
			require.True(r.t, dead, "after step %d", i)
		}
		r.checkReader()
		r.checkCut(i)
		if !r.moving(steps[:i+1]) { // a checkpoint never comes between
			require.NoError(r.t, r.db.Checkpoint(r.t.Context()))
			r.checkCut(i)
		}
	}
	if r.reader != nil {
		require.NoError(r.t, r.reader.Rollback())
	}
	r.check(r.db, r.items)
	require.NoError(r.t, r.db.Close(r.t.Context()))
	r.checkCut(len(steps))
}

func (r *relocationTest) moving(done []string) bool {
	return slices.Contains(done, "append") && !slices.Contains(done, "apply")
}

func (r *relocationTest) step(step string) {
	t := r.t
	switch step {
	case "append":
		require.NoError(t, r.move.Append())
	case "apply":
		require.NoError(t, r.move.Apply())
	case "update", "insert", "delete":
		r.begin()
		r.write(step)
	case "commit":
		require.NoError(t, r.tx.Commit(t.Context()))
		r.tx, r.want = nil, r.pending
	case "rollback":
		require.NoError(t, r.tx.Rollback())
		r.tx = nil
	case "read":
		r.check(r.db, r.items)
	case "reader":
		var err error
		r.reader, err = r.db.Begin(t.Context(), false)
		require.NoError(t, err)
		r.seen = r.want
	}
}

func (r *relocationTest) begin() {
	if r.tx != nil {
		return
	}
	var err error
	r.tx, err = r.db.Begin(r.t.Context(), true)
	require.NoError(r.t, err)
	r.pending = r.want
}

func (r *relocationTest) write(step string) {
	r.value++
	row := &item{ID: 1, Name: "1", Group: r.value}
	switch step {
	case "update":
		require.NoError(r.t, r.items.Update(r.tx, row))
	case "insert":
		require.NoError(r.t, r.items.Insert(r.tx, row))
	case "delete":
		require.NoError(r.t, r.items.Delete(r.tx, row))
		row = nil
	}
	r.pending = row
}

// check compares the committed row, without bringing it online.
func (r *relocationTest) check(db *rekindle.DB, items *rekindle.Table[item]) {
	r.t.Helper()
	r.require(r.want, allItems(r.t, db, items))
	_, err := db.CrossCheck(r.t.Context())
	require.NoError(r.t, err)
}

func (r *relocationTest) require(want *item, found []item) {
	r.t.Helper()
	if want == nil {
		require.Empty(r.t, found)
		return
	}
	require.Equal(r.t, []item{*want}, found)
}

func (r *relocationTest) checkReader() {
	if r.reader == nil {
		return
	}
	row := item{ID: 1}
	err := r.items.Get(r.reader, &row)
	if r.seen == nil {
		require.ErrorIs(r.t, err, rekindle.ErrNotFound)
		return
	}
	require.NoError(r.t, err)
	require.Equal(r.t, *r.seen, row)
}

// checkCut opens what a power cut would leave now.
func (r *relocationTest) checkCut(step int) {
	r.t.Helper()
	cut := r.fs.CrashClone(nil, vfs.Strict)
	db, items := openItems(r.t, cut, rekindle.Options{CheckpointBytes: -1})
	r.check(db, items)
	require.NoError(r.t, db.Checkpoint(context.Background()), "after step %d", step)
	require.NoError(r.t, db.Close(r.t.Context()))
}
