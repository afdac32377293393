package rekindle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// catalog knows the tables of a database. Their definitions are the rows of
// system table 0, which is a table like any other: same log, same checkpoints,
// same transactions.
type catalog struct {
	db  *DB
	ddl sync.Mutex // one change of the catalogue at a time
	set atomic.Pointer[tableSet]
}

// tableSet is immutable; a change replaces it.
type tableSet struct {
	byID   map[rowid.Table]*txn.Table
	byName map[string]*txn.Table
}

const systemTable = rowid.Table(0)

// systemSchema is the schema of table 0. Its columns are fixed.
func systemSchema() *schema.Table {
	return &schema.Table{
		Name: "rekindle_tables",
		Columns: []schema.Column{
			{Name: "id", Type: schema.Uint16},
			{Name: "name", Type: schema.String},
			{Name: "definition", Type: schema.String},
		},
		Indexes: []schema.Index{
			{Name: "primary", Columns: []int{0}, Unique: true},
			{Name: "name", Columns: []int{1}, Unique: true},
		},
	}
}

// load opens the system table and then every table that it lists, and brings
// their indexes up to date.
func (c *catalog) load(ctx context.Context) error {
	c.set.Store(&tableSet{byID: map[rowid.Table]*txn.Table{}, byName: map[string]*txn.Table{}})
	if err := c.open(ctx, systemTable, systemSchema()); err != nil {
		return err
	}
	definitions, err := c.definitions(ctx)
	if err != nil {
		return err
	}
	for id, s := range definitions {
		if err := c.open(ctx, id, s); err != nil {
			return err
		}
	}
	c.db.state.Report.TablesOpened = len(definitions)
	return c.db.state.ApplyTail(ctx, c.db.log, c.byID, c.db.collector.Add, c.settle)
}

// settle works off the suspects of a recovery that lacks memory.
func (c *catalog) settle(ctx context.Context) error {
	c.db.collector.Settle(ctx)
	for _, t := range c.tables() {
		for _, ix := range t.Indexes {
			if s, ok := ix.(index.Shrinker); ok {
				if err := s.Shrink(ctx, false); err != nil {
					return err
				}
			}
		}
	}
	if err := c.db.epochs.Barrier(ctx); err != nil {
		return err
	}
	c.db.collector.GiveBack()
	return nil
}

// definitions reads the rows of the system table, without its indexes, which
// may lag behind.
func (c *catalog) definitions(ctx context.Context) (map[rowid.Table]*schema.Table, error) {
	tx, err := c.db.manager.Begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	system := c.byID(systemTable)
	found := map[rowid.Table]*schema.Table{}
	names := map[string]bool{}
	err = tx.Rows(ctx, system, func(row rowid.ID, payload []byte) error {
		id, s, err := readDefinition(system.Layout, payload)
		if err == nil && (found[id] != nil || names[s.Name]) {
			err = fmt.Errorf("%w: table %d %q is defined twice", fault.ErrCorrupt, id, s.Name)
		}
		if err != nil {
			return c.inDefinition(system, row, err)
		}
		found[id], names[s.Name] = s, true
		return nil
	})
	return found, err
}

// readDefinition reads a row of the system table.
func readDefinition(layout *schema.Layout, payload []byte) (id rowid.Table, s *schema.Table, err error) {
	row, err := layout.DecodeRow(payload)
	if err != nil {
		return 0, nil, err
	}
	if s, err = schema.Unmarshal([]byte(row[2].(string))); err != nil {
		return 0, nil, err
	}
	id = rowid.Table(row[0].(uint16))
	if id == systemTable || s.Name != row[1].(string) {
		return 0, nil, fmt.Errorf("%w: row of table %d %q defines %q", fault.ErrCorrupt, id, row[1], s.Name)
	}
	return id, s, nil
}

// inDefinition says where the row of the system table lies that something is wrong
// with.
func (c *catalog) inDefinition(system *txn.Table, row rowid.ID, err error) error {
	kind := fault.ErrCorrupt
	if errors.Is(err, fault.ErrFormat) {
		kind = fault.ErrFormat
	}
	word, loadErr := system.Rows.Load(row.Ordinal()) // nobody else uses the table yet
	if loadErr != nil {
		return errors.Join(err, loadErr)
	}
	path, offset := c.db.log.Place(c.db.manager.AddressAt(word, c.db.log.Durable()))
	return &fault.File{Kind: kind, Path: path, Offset: offset, Reason: err.Error()}
}

// open makes the runtime form of a stored table and opens its indexes.
func (c *catalog) open(ctx context.Context, id rowid.Table, s *schema.Table) error {
	t, err := c.runtime(id, s)
	if err != nil {
		return err
	}
	if err := c.db.state.OpenIndexes(ctx, c.db.log, t, c.spec(t)); err != nil {
		return err
	}
	for number, ix := range t.Indexes {
		t.Indexes[number] = c.db.repairable(t, number, ix)
	}
	c.add(t)
	return nil
}

// runtime makes a table without indexes, over the recovered array if there is
// one.
func (c *catalog) runtime(id rowid.Table, s *schema.Table) (*txn.Table, error) {
	layout, err := schema.NewLayout(s)
	if err != nil {
		return nil, err
	}
	array, ok := c.db.state.Arrays[id]
	if !ok {
		array = indirection.NewArray(c.db.epochs, c.db.arena, id, nil)
		c.db.state.Arrays[id] = array
	}
	return &txn.Table{
		Manager: c.db.manager,
		ID:      id,
		Schema:  s,
		Layout:  layout,
		Rows:    array,
		IDs:     rowid.NewAllocator(max(1, array.HighWater())),
	}, nil
}

func (c *catalog) spec(t *txn.Table) func(number int) index.Spec {
	return func(number int) index.Spec {
		return index.Spec{
			Table:      t.ID,
			Number:     number,
			Name:       t.Name() + "." + t.Schema.Indexes[number].Name,
			DatabaseID: c.db.state.Header.DatabaseID,
			Arena:      c.db.arena,
			Domain:     c.db.epochs,
			FS:         c.db.opts.fs,
			Logger:     c.db.opts.Logger,
			Recovered:  c.db.recovered,
		}
	}
}

// openTable returns the table with the name and schema of wanted, creating it
// if there is none.
func (c *catalog) openTable(ctx context.Context, wanted *schema.Table) (*txn.Table, error) {
	if err := c.db.enter(); err != nil {
		return nil, err
	}
	defer c.db.leave()
	if err := wanted.Validate(); err != nil {
		return nil, err
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	t, err := c.find(wanted.Name)
	if errors.Is(err, fault.ErrNotFound) && !c.db.opts.ReadOnly {
		return c.create(ctx, wanted)
	}
	if err != nil {
		return nil, err
	}
	return t, wanted.CompatibleWith(t.Schema)
}

func (c *catalog) find(name string) (*txn.Table, error) {
	if c.db.closed.Load() {
		return nil, fault.ErrClosed
	}
	t, ok := c.set.Load().byName[name]
	if !ok {
		return nil, &fault.NotFound{Table: name}
	}
	return t, nil
}

// create adds a table. It can be used once its definition is durable, so that
// no log record can belong to a table that a crash takes back.
func (c *catalog) create(ctx context.Context, s *schema.Table) (*txn.Table, error) {
	id, err := c.nextID(s.Name)
	if err != nil {
		return nil, err
	}
	t, err := c.runtime(id, s)
	if err != nil {
		return nil, err
	}
	for number := range s.Indexes {
		ix, err := c.db.state.Strategy.Create(c.spec(t)(number))
		if err != nil {
			return nil, errors.Join(err, closeIndexes(t))
		}
		t.Indexes = append(t.Indexes, c.db.repairable(t, number, ix))
	}
	if err := c.store(ctx, id, s); err != nil {
		return nil, errors.Join(err, closeIndexes(t))
	}
	c.add(t)
	return t, nil
}

func (c *catalog) nextID(name string) (rowid.Table, error) {
	next := slices.Max(slices.Collect(maps.Keys(c.set.Load().byID))) + 1
	if next == 0 {
		return 0, &fault.Schema{Kind: fault.ErrSchema, Table: name, Reason: "the database has as many tables as it can hold"}
	}
	return next, nil
}

// store writes the definition of a table, whatever the database's durability.
func (c *catalog) store(ctx context.Context, id rowid.Table, s *schema.Table) error {
	definition, err := s.Marshal()
	if err != nil {
		return err
	}
	system := c.set.Load().byID[systemTable]
	row, err := system.Layout.AppendRow(nil, []any{uint16(id), s.Name, string(definition)})
	if err != nil {
		return err
	}
	tx, err := c.db.manager.Begin(ctx, true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.SetDurability(logstream.Durability{Mode: logstream.Sync}); err != nil {
		return err
	}
	if err := insertDefinition(&tx, system, row); err != nil {
		return err
	}
	return tx.Commit(context.WithoutCancel(ctx))
}

func insertDefinition(tx *txn.Tx, system *txn.Table, row []byte) error {
	call, err := tx.Enter(system)
	if err != nil {
		return err
	}
	defer call.Leave()
	return call.Insert(system, row)
}

func (c *catalog) add(t *txn.Table) {
	old := c.set.Load()
	next := &tableSet{byID: maps.Clone(old.byID), byName: maps.Clone(old.byName)}
	next.byID[t.ID] = t
	if t.ID != systemTable {
		next.byName[t.Name()] = t
	}
	c.set.Store(next)
}

// byID returns a table for the collector.
func (c *catalog) byID(id rowid.Table) *txn.Table { return c.set.Load().byID[id] }

// tables returns all tables, the system table first.
func (c *catalog) tables() []*txn.Table {
	set := c.set.Load()
	if set == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(set.byID), func(a, b *txn.Table) int { return int(a.ID) - int(b.ID) })
}

func (c *catalog) schemas() []TableSchema {
	var all []TableSchema
	for _, t := range c.tables() {
		if t.ID != systemTable {
			all = append(all, *t.Schema)
		}
	}
	slices.SortFunc(all, func(a, b TableSchema) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (c *catalog) close() error {
	var errs []error
	for _, t := range c.tables() {
		errs = append(errs, closeIndexes(t))
	}
	return errors.Join(errs...)
}

func closeIndexes(t *txn.Table) error {
	var errs []error
	for _, ix := range t.Indexes {
		errs = append(errs, ix.Close())
	}
	return errors.Join(errs...)
}
