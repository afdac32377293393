package recovery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

const (
	// rebuildChunk rows are read in the order of their log addresses at a
	// time, so that reading is mostly sequential.
	rebuildChunk = 1 << 18
	// recycledOrdinals bounds how many free ordinals of a table are kept in
	// memory after a rebuild; the rest is found by a later one.
	recycledOrdinals = 1 << 20
)

// indexID names an index of the database.
type indexID struct {
	table  rowid.Table
	number int
}

// OpenIndexes brings the indexes of a table back: from their checkpoint files
// if there are any, else by reading the table's rows. Those opened from files
// are behind by the tail until ApplyTail. Nothing else uses the table yet.
func (s *State) OpenIndexes(ctx context.Context, log *logstream.Log, t *txn.Table, spec func(int) index.Spec) error {
	report := &s.Report
	t.Indexes = make([]index.Index, len(t.Schema.Indexes))
	return report.Time("index/"+t.Name(), func() error {
		var missing []int
		for number := range t.Indexes {
			ix, err := s.openIndex(ctx, t.ID, number, spec(number))
			if err != nil {
				return errors.Join(fmt.Errorf("index %s: %w", spec(number).Name, err), closeAll(t.Indexes))
			}
			if t.Indexes[number] = ix; ix == nil {
				missing = append(missing, number)
				s.rebuilt[indexID{t.ID, number}] = true
				continue
			}
			report.IndexesMapped++
		}
		if len(missing) == 0 {
			return nil
		}
		b := &indexBuild{ctx: ctx, t: t, log: log, reader: logstream.NewReader(log), report: report, progress: s.progress, recycles: !s.Strategy.Persistent()}
		if err := b.run(missing, s.Strategy, spec); err != nil {
			return errors.Join(err, closeAll(t.Indexes))
		}
		return nil
	})
}

// openIndex opens one index from its files, or returns nil if it has to be
// built.
func (s *State) openIndex(ctx context.Context, table rowid.Table, number int, spec index.Spec) (index.Index, error) {
	if !s.Strategy.Persistent() {
		return nil, nil
	}
	if !s.mapped[table] { // the table is younger than the checkpoint: all its entries are in the tail
		return s.Strategy.Create(spec)
	}
	files := s.indexFiles(table, number)
	err := s.verifyIndexFiles(ctx, files)
	var ix index.Index
	if err == nil {
		ix, err = s.Strategy.Open(ctx, spec, files)
	}
	switch {
	case errors.Is(err, index.ErrNoCheckpoint):
		return nil, nil
	case err != nil && damaged(err):
		s.fallback(fmt.Sprintf("index %s is rebuilt: %v", spec.Name, err))
		return nil, nil
	}
	return ix, err
}

// verifyIndexFiles compares whole files with the manifest, if that was asked for;
// otherwise their parts are checked when they are first used.
func (s *State) verifyIndexFiles(ctx context.Context, files []index.FileInfo) error {
	if !s.cfg.Verify {
		return nil
	}
	for _, f := range files {
		if err := mapfile.Check(ctx, s.cfg.FS, f.Name, f.Size, f.Sum); err != nil {
			return err
		}
	}
	return nil
}

// indexFiles returns the files of an index with their names in the file system.
func (s *State) indexFiles(table rowid.Table, number int) []index.FileInfo {
	for _, x := range s.base.Indexes {
		if x.Table == table && x.Index == number {
			files := slices.Clone(x.Files)
			for i := range files {
				files[i].Name = s.path(filepath.FromSlash(files[i].Name))
			}
			return files
		}
	}
	return nil
}

// run builds the indexes with the given numbers from the rows of the table.
func (b *indexBuild) run(numbers []int, strategy index.Strategy, spec func(int) index.Spec) error {
	b.entries = make(map[int]*entryList, len(numbers))
	for _, number := range numbers {
		b.entries[number] = &entryList{}
	}
	if err := b.readRows(); err != nil {
		return fmt.Errorf("table %s: %w", b.t.Name(), err)
	}
	for _, number := range numbers {
		ix, err := b.entries[number].load(strategy, spec(number))
		if err != nil {
			return fmt.Errorf("index %s: %w", spec(number).Name, err)
		}
		b.t.Indexes[number] = ix
		b.report.IndexesRebuilt++
	}
	return nil
}

func closeAll(indexes []index.Index) error {
	var errs []error
	for _, ix := range indexes {
		if ix != nil {
			errs = append(errs, ix.Close())
		}
	}
	return errors.Join(errs...)
}

// indexBuild collects the entries of all indexes of a table.
type indexBuild struct {
	ctx      context.Context
	t        *txn.Table
	log      *logstream.Log
	reader   *logstream.Reader
	report   *Report
	progress func(string, int64, int64)

	chunk   []slot
	entries map[int]*entryList // by index number

	recycles bool   // give free ordinals to the allocator on the way
	last     uint64 // newest ordinal seen
	free     int    // ordinals given to the allocator
}

type slot struct {
	ordinal uint64
	address logstream.Address
}

// readRows reads every row of the table once, and gives the ordinals between
// them back to the allocator. Records are read outside of the scan, which holds
// a pin.
func (b *indexBuild) readRows() error {
	for full := true; full; {
		b.chunk = b.chunk[:0]
		err := b.t.Rows.Scan(b.last+1, func(ordinal uint64, word indirection.Word) bool {
			b.recycle(ordinal)
			b.chunk = append(b.chunk, slot{ordinal, word.Address()})
			return len(b.chunk) < rebuildChunk
		})
		if err != nil {
			return err
		}
		full = len(b.chunk) == rebuildChunk
		if err := b.readChunk(); err != nil {
			return err
		}
	}
	b.recycle(b.t.Rows.HighWater())
	return nil
}

// recycle frees the empty slots between the last row and the next one.
func (b *indexBuild) recycle(next uint64) {
	for o := b.last + 1; b.recycles && o < next && b.free < recycledOrdinals; o++ {
		b.t.IDs.Free(o)
		b.free++
	}
	b.last = next
}

func (b *indexBuild) readChunk() error {
	slices.SortFunc(b.chunk, func(x, y slot) int { return cmp.Compare(x.address, y.address) })
	for i, s := range b.chunk {
		if i%4096 == 0 && b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if err := b.readRow(s); err != nil {
			return inRecord(b.log, s.address, err)
		}
	}
	b.report.RowsScanned += int64(len(b.chunk))
	b.progress("index/"+b.t.Name(), b.report.RowsScanned, 0)
	return nil
}

func (b *indexBuild) readRow(s slot) error {
	record, err := b.reader.Read(s.address)
	if err != nil {
		return err
	}
	row := rowid.Make(b.t.ID, s.ordinal)
	if record.Row != row {
		return fmt.Errorf("%w: log record at %v belongs to row %v, not %v", fault.ErrCorrupt, s.address, record.Row, row)
	}
	if err := b.t.Layout.Check(record.Payload); err != nil {
		return err
	}
	for number, list := range b.entries {
		list.add(b.t, number, row, record.Payload)
	}
	return nil
}

// entryList holds the entries of one index: keys in one buffer.
type entryList struct {
	keys    []byte
	entries []entry
}

type entry struct {
	from uint64
	to   uint64
	row  rowid.ID
}

func (l *entryList) add(t *txn.Table, number int, row rowid.ID, payload []byte) {
	from := uint64(len(l.keys))
	l.keys = t.Layout.AppendKey(l.keys, number, payload)
	l.entries = append(l.entries, entry{from, uint64(len(l.keys)), row})
}

func (l *entryList) key(e entry) []byte { return l.keys[e.from:e.to] }

func (l *entryList) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int {
		return cmp.Or(bytes.Compare(l.key(a), l.key(b)), cmp.Compare(a.row, b.row))
	})
}

// load sorts the entries and builds the index from them.
func (l *entryList) load(strategy index.Strategy, spec index.Spec) (index.Index, error) {
	l.sort()
	builder, err := strategy.NewBuilder(spec)
	if err != nil {
		return nil, err
	}
	defer builder.Abandon()
	for _, e := range l.entries {
		if err := builder.Add(l.key(e), e.row); err != nil {
			return nil, err
		}
	}
	l.keys, l.entries = nil, nil
	return builder.Finish()
}
