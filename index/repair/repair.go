// Package repair lets an index that was found damaged be built anew while it is
// in use.
//
// An Index passes everything on to the index that it stands for, until that one
// meets damage in its files. From then on an empty index takes its place: what
// is entered or removed goes there, and what would have to be looked up is refused
// with fault.ErrIndexDamaged, also the check of a unique key. The engine, which is
// told, then fills it from the rows by Rebuild, and it serves.
package repair

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// Config says what an Index needs of the engine.
type Config struct {
	Name   string                       // "table.index", for errors
	Create func() (index.Index, error)  // makes the empty index
	Mine   func(path string) bool       // is this a file of the index
	Found  func(x *Index, damage error) // told once of each damage; must not wait
}

// Index is a replaceable index.
type Index struct {
	cfg     Config
	current atomic.Pointer[state]
}

// state is what an Index stands for at one moment.
type state struct {
	index.Index
	old    index.Index // the damaged one that Index replaces, until it is closed
	damage error       // met in old; nil when Index is complete
}

// New returns an Index that stands for ix.
func New(cfg Config, ix index.Index) *Index {
	x := &Index{cfg: cfg}
	x.current.Store(&state{Index: ix})
	return x
}

// refusal is the error of everything that needs to look something up.
func (x *Index) refusal(s *state) error {
	if s.damage == nil {
		return nil
	}
	return x.refused(s.damage)
}

func (x *Index) refused(damage error) error {
	return fmt.Errorf("%w: %s: %w", fault.ErrIndexDamaged, x.cfg.Name, damage)
}

// check looks whether an error says that the files of the index are damaged, and
// lets an empty index take over if so.
func (x *Index) check(s *state, err error) error {
	if err == nil || s.damage != nil || !x.isDamage(err) {
		return err
	}
	fresh, failed := x.cfg.Create()
	if failed != nil {
		return errors.Join(err, failed)
	}
	if x.current.CompareAndSwap(s, &state{fresh, s.Index, err}) {
		x.cfg.Found(x, err)
	} else { // somebody else has met damage first
		err = errors.Join(err, fresh.Close())
	}
	return x.refused(err)
}

func (x *Index) isDamage(err error) bool {
	var f *fault.File
	return errors.As(err, &f) && x.cfg.Mine(f.Path)
}

// Insert implements index.Index.
func (x *Index) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	s := x.current.Load()
	if unique != nil && s.damage != nil {
		return x.refusal(s)
	}
	err := x.check(s, s.Insert(h, key, row, unique))
	if unique == nil && errors.Is(err, fault.ErrIndexDamaged) {
		return x.current.Load().Insert(h, key, row, nil)
	}
	return err
}

// Remove implements index.Index.
func (x *Index) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	s := x.current.Load()
	removed, err := s.Remove(h, key, row, dead)
	if err = x.check(s, err); errors.Is(err, fault.ErrIndexDamaged) {
		return x.current.Load().Remove(h, key, row, dead)
	}
	return removed, err
}

// Lookup implements index.Index.
func (x *Index) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	s := x.current.Load()
	if s.damage != nil {
		return dst, x.refusal(s)
	}
	dst, err := s.Lookup(h, key, dst)
	if err != nil {
		err = x.check(s, err)
	}
	return dst, err
}

// LookupBatch implements index.BatchLooker.
func (x *Index) LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error) {
	s := x.current.Load()
	if s.damage != nil {
		return dst, ends, x.refusal(s)
	}
	dst, ends, err := index.LookupMany(s.Index, h, keys, dst, ends)
	return dst, ends, x.check(s, err)
}

// Scan implements index.Index.
func (x *Index) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	s := x.current.Load()
	if s.damage != nil {
		return false, x.refusal(s)
	}
	more, err := s.Scan(h, r, c, b)
	return more, x.check(s, err)
}

// Stats implements index.Index.
func (x *Index) Stats() index.Stats { return x.current.Load().Stats() }

// Close implements index.Index.
func (x *Index) Close() error {
	s := x.current.Load()
	err := s.Close()
	if s.old != nil {
		err = errors.Join(err, s.old.Close())
	}
	return err
}

// Rebuild lets fill enter everything that belongs into the index, and then lets it
// serve. No checkpoint is under way meanwhile. After an error it may be called
// again.
func (x *Index) Rebuild(ctx context.Context, domain *epoch.Domain, fill func(index.Index) error) error {
	s := x.current.Load()
	if s.damage == nil {
		return nil
	}
	if err := domain.Barrier(ctx); err != nil { // whoever still uses the old one has not missed to use the new one
		return err
	}
	if err := fill(s.Index); err != nil {
		return err
	}
	healed := &state{Index: s.Index, old: s.old}
	x.current.Store(healed)
	if err := domain.Barrier(ctx); err != nil {
		return err // Close closes the old one
	}
	x.current.CompareAndSwap(healed, &state{Index: s.Index})
	return s.old.Close()
}

// BeginCheckpoint implements index.Checkpointer. A damaged index has none.
func (x *Index) BeginCheckpoint(ctx context.Context, n uint64) (index.Capture, error) {
	s := x.current.Load()
	if s.damage != nil {
		return nil, x.refusal(s)
	}
	c, err := s.Index.(index.Checkpointer).BeginCheckpoint(ctx, n)
	if err != nil {
		return nil, x.check(s, err)
	}
	return &capture{Capture: c, x: x, s: s}, nil
}

// Shrink implements index.Shrinker.
func (x *Index) Shrink(ctx context.Context, demote bool) error {
	s := x.current.Load()
	if shrinker, ok := s.Index.(index.Shrinker); ok {
		return x.check(s, shrinker.Shrink(ctx, demote))
	}
	return nil
}

// capture watches the writing of a checkpoint, which reads the index's files.
type capture struct {
	index.Capture
	x *Index
	s *state
}

func (c *capture) Write(ctx context.Context, create func(ext string) (vfs.File, error)) ([]index.FileInfo, error) {
	files, err := c.Capture.Write(ctx, create)
	return files, c.x.check(c.s, err)
}
