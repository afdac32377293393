package recovery

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// tailBatch bounds the entries that wait to be added to an index in key order.
const tailBatch = 1 << 20

// ApplyTail brings the indexes that were opened from files up to date: the keys
// that the tail's records give their rows are added, those that they take away
// become suspects. Replay has noted which records are concerned; they are read
// again here, because only now the tables and their keys are known. The entries of
// rows that have come and gone in the tail can take more memory than the database
// ever did: where it is lacking, settle is called, which works suspects off, and from
// then on only entries are added that the rows of now have.
func (s *State) ApplyTail(ctx context.Context, log *logstream.Log, find func(rowid.Table) *txn.Table, suspect func(txn.Garbage), settle func(context.Context) error) error {
	if len(s.tail) == 0 {
		return nil
	}
	return s.Report.Time("index tail", func() error {
		a := &tailApplier{s: s, find: find, suspect: suspect, settle: settle, report: &s.Report, h: s.cfg.Epochs.Register(), lists: map[indexID]*entryList{}}
		reader := logstream.NewReader(log)
		a.ctx, a.reader = ctx, reader
		for i, address := range s.tail {
			if i%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			record, err := reader.Read(address)
			if err == nil {
				err = a.apply(record)
			}
			if err != nil {
				return fmt.Errorf("tail record at %v: %w", address, inRecord(log, address, err))
			}
		}
		s.tail = nil
		return a.flush()
	})
}

// inRecord gives the error for what is wrong with the content of a record the
// file and the offset of the record, if it has none.
func inRecord(log *logstream.Log, address logstream.Address, err error) error {
	var file *fault.File
	if !errors.Is(err, fault.ErrCorrupt) || errors.As(err, &file) {
		return err
	}
	path, offset := log.Place(address)
	return &fault.File{Kind: fault.ErrCorrupt, Path: path, Offset: offset, Reason: err.Error()}
}

type tailApplier struct {
	s       *State
	find    func(rowid.Table) *txn.Table
	suspect func(txn.Garbage)
	ctx     context.Context
	settle  func(context.Context) error
	reader  *logstream.Reader
	short   bool // of memory
	report  *Report
	h       *epoch.Handle
	lists   map[indexID]*entryList
	waiting int
}

func (a *tailApplier) apply(r logstream.Record) error {
	t := a.find(r.Row.Table())
	if t == nil {
		return fmt.Errorf("%w: there is no table %d", fault.ErrCorrupt, r.Row.Table())
	}
	gained := uint64(1)<<uint(len(t.Indexes)) - 1
	if r.Kind != logstream.Insert {
		var err error
		if gained, err = a.suspectOldKeys(t, r); err != nil {
			return err
		}
	}
	if r.Kind == logstream.Delete {
		return nil
	}
	if err := t.Layout.Check(r.Payload); err != nil {
		return err
	}
	for ; gained != 0; gained &= gained - 1 {
		a.add(t, bits.TrailingZeros64(gained), r)
	}
	if a.waiting >= tailBatch {
		return a.flush()
	}
	return nil
}

// suspectOldKeys reports the keys that a record takes away and returns the
// indexes they belong to.
func (a *tailApplier) suspectOldKeys(t *txn.Table, r logstream.Record) (mask uint64, err error) {
	keys := logstream.OldKeys(r.Keys)
	mask, err = keys.Indexes()
	if err == nil && mask == 0 {
		err = errors.New("no old keys")
	}
	if err == nil && mask>>uint(len(t.Indexes)) != 0 {
		err = fmt.Errorf("an index that table %s does not have", t.Name())
	}
	if err == nil {
		err = keys.Each(func(index int, key []byte) {
			a.suspect(txn.Garbage{Row: r.Row, Kind: txn.GarbageSuspect, Index: uint8(index), Key: key})
		})
	}
	if err != nil {
		return 0, fmt.Errorf("%w: record of row %v: %w", fault.ErrCorrupt, r.Row, err)
	}
	return mask, nil
}

// add notes an entry for an index that was opened from files.
func (a *tailApplier) add(t *txn.Table, number int, r logstream.Record) {
	id := indexID{t.ID, number}
	if a.s.rebuilt[id] {
		return
	}
	list := a.lists[id]
	if list == nil {
		list = &entryList{}
		a.lists[id] = list
	}
	list.add(t, number, r.Row, r.Payload)
	a.waiting++
}

// flush adds the noted entries, index by index in the order of keys.
func (a *tailApplier) flush() error {
	for id, list := range a.lists {
		list.sort()
		for _, e := range list.entries {
			if err := a.enter(id, list.key(e), e.row); err != nil {
				return err
			}
		}
		a.report.EntriesReplayed += int64(len(list.entries))
		list.keys, list.entries = list.keys[:0], list.entries[:0]
	}
	a.waiting = 0
	return nil
}

// enter adds an entry, unless memory is short and nobody needs it.
func (a *tailApplier) enter(id indexID, key []byte, row rowid.ID) error {
	t := a.find(id.table)
	if !a.short {
		err := a.insert(t.Indexes[id.number], key, row)
		if !errors.Is(err, fault.ErrMemoryLimit) {
			return err
		}
		a.short = true
		if err := a.settle(a.ctx); err != nil { // of entries to come none is left to a suspect
			return err
		}
	}
	if needed, err := a.needed(t, id.number, key, row); !needed || err != nil {
		return err
	}
	return a.insert(t.Indexes[id.number], key, row)
}

func (a *tailApplier) insert(ix index.Index, key []byte, row rowid.ID) error {
	a.h.Pin()
	defer a.h.Unpin()
	return ix.Insert(a.h, key, row, nil)
}

// needed reports whether a row has a key after the whole tail.
func (a *tailApplier) needed(t *txn.Table, number int, key []byte, row rowid.ID) (bool, error) {
	a.h.Pin()
	word, err := t.Rows.Load(row.Ordinal())
	a.h.Unpin()
	if err != nil || !word.IsLog() { // in memory is what the catalogue has read, and never changes
		return word != 0, err
	}
	r, err := a.reader.Read(word.Address())
	if err == nil && r.Row != row {
		err = fmt.Errorf("%w: record of row %v, not %v", fault.ErrCorrupt, r.Row, row)
	}
	if err == nil {
		err = t.Layout.Check(r.Payload)
	}
	if err != nil {
		return false, err
	}
	return t.Layout.KeyMatches(number, r.Payload, key), nil
}
