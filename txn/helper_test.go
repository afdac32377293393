package txn

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/rebuild"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// engine is a manager with one table and no collector: what would be collected
// stays in the queue for the test to look at.
type engine struct {
	*Manager
	t     testing.TB
	table *Table
	h     *epoch.Handle
}

// Indexes of the table.
const (
	byID = iota
	byName
	byGroup
)

func newEngine(t testing.TB, change ...func(*Config)) *engine {
	e := &engine{t: t}
	a := arena.New(arena.Config{})
	d := epoch.NewDomain(a)
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	require.NoError(t, mem.SyncDir("."))
	log, err := logstream.Open(logstream.Options{FS: mem, Dir: "db/log", DatabaseID: [16]byte{1}, SegmentBytes: 1 << 20}, logstream.Start{})
	require.NoError(t, err)
	c := Config{
		Arena: a, Epochs: d, Log: log, Durability: logstream.Durability{Mode: logstream.Sync},
		MaxRow: 1 << 16, MaxPart: 1 << 17, MaxRecord: 1 << 17,
		Find: func(rowid.Table) *Table { return e.table },
	}
	for _, f := range change {
		f(&c)
	}
	e.Manager = NewManager(c)
	e.h = d.Register()
	e.table = newTable(t, e.Manager)
	t.Cleanup(func() {
		e.Close()
		require.NoError(t, log.Close(context.Background()))
		require.NoError(t, e.table.Rows.Close())
		d.Close()
		require.NoError(t, a.Close())
	})
	return e
}

func newTable(t testing.TB, m *Manager) *Table {
	s := &schema.Table{
		Name:    "items",
		Columns: []schema.Column{{Name: "id", Type: schema.Int64}, {Name: "name", Type: schema.String}, {Name: "group", Type: schema.Int64}},
		Indexes: []schema.Index{
			{Name: "primary", Columns: []int{0}, Unique: true},
			{Name: "name", Columns: []int{1}, Unique: true},
			{Name: "group", Columns: []int{2}},
		},
	}
	layout, err := schema.NewLayout(s)
	require.NoError(t, err)
	table := &Table{Manager: m, ID: 1, Schema: s, Layout: layout, Rows: indirection.NewArray(m.Epochs, m.Arena, 1, nil), IDs: rowid.NewAllocator(1)}
	for i := range s.Indexes {
		ix, err := rebuild.Strategy{}.Create(index.Spec{Table: 1, Number: i, Arena: m.Arena, Domain: m.Epochs})
		require.NoError(t, err)
		table.Indexes = append(table.Indexes, ix)
	}
	return table
}

func (e *engine) begin(writable bool) *Tx {
	e.t.Helper()
	tx, err := e.Begin(e.t.Context(), writable)
	require.NoError(e.t, err)
	return &tx
}

func (e *engine) row(id int64, name string, group int64) []byte {
	row, err := e.table.Layout.AppendRow(nil, []any{id, name, group})
	require.NoError(e.t, err)
	return row
}

// do runs one statement.
func (e *engine) do(tx *Tx, statement func(c *Call) error) error {
	e.t.Helper()
	c, err := tx.Enter(e.table)
	if err != nil {
		return err
	}
	defer c.Leave()
	return statement(c)
}

// put inserts or replaces a row.
func (e *engine) put(tx *Tx, id int64, name string, group int64) error {
	return e.do(tx, func(c *Call) error { return c.Upsert(e.table, e.row(id, name, group)) })
}

func (e *engine) remove(tx *Tx, id int64) error {
	key := e.table.Layout.AppendKey(nil, byID, e.row(id, "", 0))
	return e.do(tx, func(c *Call) error {
		found, err := c.Delete(e.table, key)
		if err == nil && !found {
			err = fmt.Errorf("row %d not found", id)
		}
		return err
	})
}

// commit runs statements in a transaction of their own and returns its CTS.
func (e *engine) commit(statements func(tx *Tx) error) uint64 {
	e.t.Helper()
	tx := e.begin(true)
	require.NoError(e.t, statements(tx))
	require.NoError(e.t, tx.Commit(e.t.Context()))
	return e.Log.Visible()
}

// name returns the name of a row as tx sees it, "" if it does not.
func (e *engine) name(tx *Tx, id int64) (name string) {
	e.t.Helper()
	require.NoError(e.t, e.do(tx, func(c *Call) error {
		row, found, err := c.Get(e.table, byID, e.table.Layout.AppendKey(nil, byID, e.row(id, "", 0)))
		if err == nil && found {
			values, err := e.table.Layout.DecodeRow(row)
			name = values[1].(string)
			return err
		}
		return err
	}))
	return name
}

// trim trims a row with a fresh copy of the snapshots.
func (e *engine) trim(ordinal uint64) (kept []uint64) {
	e.t.Helper()
	var s Snapshots
	e.Snapshots(&s)
	e.h.Pin()
	defer e.h.Unpin()
	kept, err := e.Trim(e.h, e.table, ordinal, &s, nil)
	require.NoError(e.t, err)
	return kept
}

// chain returns the CTS of all versions of a row, newest first.
func (e *engine) chain(ordinal uint64) (begins []uint64) {
	e.t.Helper()
	word, err := e.table.Rows.Load(ordinal)
	require.NoError(e.t, err)
	for word != 0 && !word.IsLog() {
		v := versionAt(e.Arena, word.Ref())
		begins = append(begins, v.begin.Load())
		word = v.olderWord()
	}
	return begins
}

// queued takes the queue.
func (e *engine) queued() (list []Garbage) {
	var waiting, due GarbageList
	e.Garbage.Take(&waiting, &due)
	collect := func(g Garbage) {
		g.Key = append([]byte(nil), g.Key...)
		list = append(list, g)
	}
	waiting.All(collect)
	due.All(collect)
	return list
}
