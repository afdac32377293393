package rekindle_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// handles are what a caller of the API has in hand.
type handles struct {
	ctx   context.Context
	db    *rekindle.DB
	tx    *rekindle.Tx
	items *rekindle.Table[item]
	rows  *rekindle.RowTable
	id    int64 // of the row to work on
	fs    vfs.FS
	dir   string
}

func openHandles(t *testing.T, fs vfs.FS, dir string, o rekindle.Options) *handles {
	t.Helper()
	h := &handles{ctx: context.Background(), id: 1, fs: fs, dir: dir}
	var err error
	h.db, err = rekindle.Open(t.Context(), dir, o.OnFS(fs))
	require.NoError(t, err)
	h.items, err = rekindle.OpenTable[item](t.Context(), h.db, "items")
	require.NoError(t, err)
	h.rows, err = h.db.Table("items")
	require.NoError(t, err)
	return h
}

// begin starts the transaction that the calls on transactions are made in.
func (h *handles) begin(writable bool) (err error) {
	h.tx, err = h.db.Begin(h.ctx, writable)
	return err
}

func (h *handles) item() *item       { return &item{ID: h.id, Name: fmt.Sprint(h.id), Group: 1} }
func (h *handles) row() rekindle.Row { return rekindle.Row{h.id, fmt.Sprint(h.id), int32(1), nil} }

func drain[R any](rows iter.Seq2[R, error]) error {
	for _, err := range rows {
		if err != nil {
			return err
		}
	}
	return nil
}

// api is every function and method of the package that takes a handle. Those of
// Tx and tables use the transaction of h. TestCallsAreComplete watches over it.
func api() map[string]func(h *handles) error {
	nothing := func(*rekindle.Tx) error { return nil }
	second := func(err error) error { // that says ErrLocked says that this database is open
		if errors.Is(err, rekindle.ErrLocked) {
			return nil
		}
		return errors.Join(err, rekindle.ErrClosed)
	}
	return map[string]func(h *handles) error{
		"OpenTable": func(h *handles) error { _, err := rekindle.OpenTable[item](h.ctx, h.db, "items"); return err },
		"Convert": func(h *handles) error {
			return second(rekindle.Convert(h.ctx, h.dir, "rebuild", rekindle.Options{}.OnFS(h.fs)))
		},
		"Open": func(h *handles) error {
			db, err := rekindle.Open(h.ctx, h.dir, rekindle.Options{ReadOnly: true}.OnFS(h.fs))
			if err == nil {
				err = db.Close(h.ctx)
			}
			return second(err)
		},

		"DB.Begin": func(h *handles) error {
			tx, err := h.db.Begin(h.ctx, true)
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
		"DB.Backup": func(h *handles) error {
			_, err := h.db.Backup(h.ctx, fmt.Sprint(h.dir, "-copy-", rand.Uint64()))
			return err
		},
		"DB.Checkpoint":       func(h *handles) error { return h.db.Checkpoint(h.ctx) },
		"DB.Close":            func(h *handles) error { return h.db.Close(h.ctx) },
		"DB.Compact":          func(h *handles) error { return h.db.Compact(h.ctx) },
		"DB.CreateTable":      func(h *handles) error { _, err := h.db.CreateTable(h.ctx, *h.rows.Schema()); return err },
		"DB.CrossCheck":       func(h *handles) error { _, err := h.db.CrossCheck(h.ctx); return err },
		"DB.OpenTransactions": func(h *handles) error { h.db.OpenTransactions(); return nil },
		"DB.RecoveryReport":   func(h *handles) error { h.db.RecoveryReport(); return nil },
		"DB.Stats":            func(h *handles) error { h.db.Stats(); return nil },
		"DB.Table":            func(h *handles) error { _, err := h.db.Table("items"); return err },
		"DB.Tables":           func(h *handles) error { h.db.Tables(); return nil },
		"DB.Update":           func(h *handles) error { return h.db.Update(h.ctx, nothing) },
		"DB.Verify":           func(h *handles) error { _, err := h.db.Verify(h.ctx); return err },
		"DB.View":             func(h *handles) error { return h.db.View(h.ctx, nothing) },

		"Tx.Commit":        func(h *handles) error { return h.tx.Commit(h.ctx) },
		"Tx.Rollback":      func(h *handles) error { return h.tx.Rollback() },
		"Tx.SetDurability": func(h *handles) error { return h.tx.SetDurability(rekindle.Sync) },

		"Table.All":     func(h *handles) error { return drain(h.items.All(h.tx)) },
		"Table.Delete":  func(h *handles) error { return h.items.Delete(h.tx, h.item()) },
		"Table.Get":     func(h *handles) error { return h.items.Get(h.tx, h.item()) },
		"Table.GetBy":   func(h *handles) error { return h.items.GetBy(h.tx, "name", h.item()) },
		"Table.GetMany": func(h *handles) error { _, err := h.items.GetMany(h.tx, []item{*h.item(), {ID: 2}}); return err },
		"Table.Insert":  func(h *handles) error { return h.items.Insert(h.tx, h.item()) },
		"Table.Name":    func(h *handles) error { h.items.Name(); return nil },
		"Table.Scan": func(h *handles) error {
			return drain(h.items.Scan(h.tx, rekindle.Query{Index: "group", Reverse: true}))
		},
		"Table.Update": func(h *handles) error { return h.items.Update(h.tx, h.item()) },
		"Table.Upsert": func(h *handles) error { return h.items.Upsert(h.tx, h.item()) },
		"Table.Visit": func(h *handles) error {
			return h.items.Visit(h.tx, rekindle.Query{Limit: 10}, func(*item) error { return nil })
		},

		"RowTable.Delete": func(h *handles) error { return h.rows.Delete(h.tx, h.id) },
		"RowTable.Get":    func(h *handles) error { _, err := h.rows.Get(h.tx, h.id); return err },
		"RowTable.Insert": func(h *handles) error { return h.rows.Insert(h.tx, h.row()) },
		"RowTable.Scan":   func(h *handles) error { return drain(h.rows.Scan(h.tx, rekindle.Query{})) },
		"RowTable.Schema": func(h *handles) error { h.rows.Schema(); return nil },
		"RowTable.Update": func(h *handles) error { return h.rows.Update(h.tx, h.row()) },
		"RowTable.Upsert": func(h *handles) error { return h.rows.Upsert(h.tx, h.row()) },
	}
}

// wrong are calls with arguments that they would refuse.
func wrong() map[string]func(h *handles) error {
	unknown := rekindle.Query{Index: "unknown"}
	return map[string]func(h *handles) error{
		"OpenTable":        func(h *handles) error { _, err := rekindle.OpenTable[int](h.ctx, h.db, "items"); return err },
		"DB.Backup":        func(h *handles) error { _, err := h.db.Backup(h.ctx, h.dir); return err },
		"DB.CreateTable":   func(h *handles) error { _, err := h.db.CreateTable(h.ctx, rekindle.TableSchema{}); return err },
		"DB.Table":         func(h *handles) error { _, err := h.db.Table("unknown"); return err },
		"Tx.SetDurability": func(h *handles) error { return h.tx.SetDurability(rekindle.Interval(-time.Second)) },
		"Table.GetBy":      func(h *handles) error { return h.items.GetBy(h.tx, "unknown", h.item()) },
		"Table.Scan":       func(h *handles) error { return drain(h.items.Scan(h.tx, unknown)) },
		"Table.Visit":      func(h *handles) error { return h.items.Visit(h.tx, unknown, nil) },
		"RowTable.Delete":  func(h *handles) error { return h.rows.Delete(h.tx) },
		"RowTable.Get":     func(h *handles) error { _, err := h.rows.Get(h.tx); return err },
		"RowTable.Insert":  func(h *handles) error { return h.rows.Insert(h.tx, nil) },
		"RowTable.Scan":    func(h *handles) error { return drain(h.rows.Scan(h.tx, rekindle.Query{Limit: -1})) },
	}
}

// TestWrongCallsOnEndedHandles: what is wrong with the arguments goes behind that
// the database is closed or the transaction has ended.
func TestWrongCallsOnEndedHandles(t *testing.T) {
	h := openHandles(t, vfs.NewMem(), "/db", rekindle.Options{})
	require.NoError(t, h.begin(true))
	require.NoError(t, h.tx.Rollback())
	for name, call := range wrong() {
		if inTransaction(name) {
			require.ErrorIs(t, call(h), rekindle.ErrTxDone, name)
		}
	}
	require.NoError(t, h.db.Close(t.Context()))
	for name, call := range wrong() {
		require.ErrorIs(t, call(h), rekindle.ErrClosed, name)
	}
}

// saysNothing are the calls that have no error to return and work on closed
// handles too.
func saysNothing(name string) bool {
	switch name {
	case "DB.OpenTransactions", "DB.RecoveryReport", "DB.Stats", "DB.Tables", "Table.Name", "RowTable.Schema":
		return true
	}
	return false
}

// inTransaction tells the calls that work in a transaction.
func inTransaction(name string) bool {
	return !saysNothing(name) && (strings.HasPrefix(name, "Tx.") || strings.Contains(name, "Table."))
}

// TestCallsAreComplete reads the package's source, because its tests add methods
// of their own.
func TestCallsAreComplete(t *testing.T) {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	calls, found := api(), 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.IsExported() && isHandle(receiver(f)) {
				require.Contains(t, calls, receiver(f)+"."+f.Name.Name)
				found++
			}
		}
	}
	require.Greater(t, found, 30)
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident).Name
}

func isHandle(name string) bool {
	return name == "DB" || name == "Tx" || name == "Table" || name == "RowTable"
}

// closedDatabases are databases that were closed in every state that calls would
// have something to say about.
func closedDatabases(t *testing.T) map[string]*handles {
	all := map[string]*handles{}
	leave := func(name string, fs vfs.FS, o rekindle.Options, spoil func(h *handles)) {
		h := openHandles(t, fs, "/db", o)
		require.NoError(t, h.begin(!o.ReadOnly))
		if spoil != nil {
			spoil(h)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it need not wait for the open transaction
		require.ErrorIs(t, h.db.Close(ctx), rekindle.ErrOpenTransactions, name)
		all[name] = h
	}
	mem := vfs.NewMem()
	leave("sound", mem, rekindle.Options{}, nil)
	leave("read-only", mem.CrashClone(nil, vfs.Keep), rekindle.Options{ReadOnly: true}, nil)
	broken := vfs.NewMem()
	leave("with a failed log", broken, rekindle.Options{}, func(h *handles) {
		broken.OnOp(failing(vfs.OpDatasync))
		require.ErrorIs(t, h.db.Update(h.ctx, func(tx *rekindle.Tx) error { return h.items.Insert(tx, h.item()) }), rekindle.ErrCommitUnknown)
		broken.OnOp(nil)
	})
	stalled := vfs.NewMem()
	leave("stalled", stalled, rekindle.Options{CheckpointBytes: 1 << 10}, func(h *handles) {
		stalled.OnOp(func(_ int, op vfs.Op) error {
			if strings.Contains(op.Path, "ckpt") {
				return errStop
			}
			return nil
		})
		var err error
		for h.id = 10; err == nil; h.id++ {
			err = h.db.Update(h.ctx, func(tx *rekindle.Tx) error { return h.items.Insert(tx, h.item()) })
		}
		require.ErrorIs(t, err, rekindle.ErrCheckpointStalled)
		stalled.OnOp(nil)
	})
	return all
}

func failing(kind vfs.Kind) func(int, vfs.Op) error {
	return func(_ int, op vfs.Op) error {
		if op.Kind == kind {
			return errStop
		}
		return nil
	}
}

// TestEveryCallOnClosedHandles: they say ErrClosed, whatever else could be said,
// and an iterator that was open says it too.
func TestEveryCallOnClosedHandles(t *testing.T) {
	for state, h := range closedDatabases(t) {
		for name, call := range api() {
			if name == "Open" || name == "Convert" {
				continue // take no handle
			}
			for _, ctx := range []context.Context{t.Context(), ended(t)} {
				h.ctx = ctx
				if err := call(h); saysNothing(name) {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, rekindle.ErrClosed, "%s on a database closed %s", name, state)
				}
			}
		}
		require.Equal(t, rekindle.Stats{}, h.db.Stats())
		require.Empty(t, h.db.OpenTransactions())
	}
}

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestEveryCallInAnEndedTransaction: they say ErrTxDone, however it ended.
func TestEveryCallInAnEndedTransaction(t *testing.T) {
	h := openHandles(t, vfs.NewMem(), "/db", rekindle.Options{})
	ends := map[string]func() error{
		"committed":   func() error { return h.tx.Commit(h.ctx) },
		"rolled back": func() error { return h.tx.Rollback() },
	}
	for how, end := range ends {
		for _, writable := range []bool{false, true} {
			require.NoError(t, h.begin(writable))
			if writable {
				require.NoError(t, h.items.Upsert(h.tx, h.item()))
			}
			require.NoError(t, end())
			for name, call := range api() {
				if inTransaction(name) {
					require.ErrorIs(t, call(h), rekindle.ErrTxDone, "%s when %s", name, how)
				}
			}
		}
	}
	require.NoError(t, h.db.Close(t.Context()))
}
