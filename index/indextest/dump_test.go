package indextest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/rebuild"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// dump is the simplest persistent strategy: every checkpoint writes all
// entries into one file, opening reads them all. It shows that the suite can be
// passed, and carries the faults that the suite must find.
type dump struct {
	rebuild.Strategy
	hooks hooks
}

func (dump) Name() string { return "dump" }

func (dump) Persistent() bool { return true }

func (d dump) Create(spec index.Spec) (index.Index, error) {
	ix, err := d.Strategy.Create(spec)
	return &dumpIndex{ix, d.hooks, spec}, err
}

func (d dump) NewBuilder(spec index.Spec) (index.Builder, error) {
	b, err := d.Strategy.NewBuilder(spec)
	return &dumpBuilder{b, d.hooks, spec}, err
}

func (d dump) Open(_ context.Context, spec index.Spec, files []index.FileInfo) (_ index.Index, err error) {
	if len(files) == 0 {
		return nil, index.ErrNoCheckpoint
	}
	data, err := readAll(spec.FS, files[0].Name)
	if err != nil {
		return nil, err
	}
	if !d.hooks.trusting && xxhash.Sum64(data) != files[0].Sum {
		return nil, fault.Corrupt(files[0].Name, 0, 0, "checksum differs")
	}
	b, err := d.NewBuilder(spec)
	if err != nil {
		return nil, err
	}
	if err := undump(data, b); err != nil {
		return nil, err
	}
	return b.Finish()
}

func readAll(fs vfs.FS, name string) ([]byte, error) {
	file, err := fs.OpenRead(name)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	return data, errors.Join(err, file.Close())
}

// undump reads what Write wrote: length, key and row of each entry.
func undump(data []byte, b index.Builder) error {
	for len(data) > 0 {
		n := binary.LittleEndian.Uint32(data)
		key := data[4:][:n]
		row := rowid.ID(binary.LittleEndian.Uint64(data[4+n:]))
		if err := b.Add(key, row); err != nil {
			return err
		}
		data = data[4+n+8:]
	}
	return nil
}

type dumpBuilder struct {
	index.Builder
	hooks hooks
	spec  index.Spec
}

func (b *dumpBuilder) Add(key []byte, row rowid.ID) error {
	err := b.Builder.Add(key, row)
	if b.hooks.anyOrder && errors.Is(err, index.ErrOrder) {
		return nil
	}
	return err
}

func (b *dumpBuilder) Finish() (index.Index, error) {
	ix, err := b.Builder.Finish()
	return &dumpIndex{ix, b.hooks, b.spec}, err
}

// dumpIndex is a rebuild index whose operations a hook may replace.
type dumpIndex struct {
	index.Index
	hooks hooks
	spec  index.Spec
}

type hooks struct {
	insert   func(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error
	remove   func(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error)
	lookup   func(ix index.Index, h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error)
	scan     func(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error)
	captured func([]Entry) []Entry
	stats    func(index.Stats) index.Stats
	anyOrder bool // the builder swallows entries out of order
	trusting bool // files are not checked
}

func (x *dumpIndex) Insert(h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	if x.hooks.insert != nil {
		return x.hooks.insert(x.Index, h, key, row, unique)
	}
	return x.Index.Insert(h, key, row, unique)
}

func (x *dumpIndex) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	if x.hooks.remove != nil {
		return x.hooks.remove(x.Index, h, key, row, dead)
	}
	return x.Index.Remove(h, key, row, dead)
}

func (x *dumpIndex) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	if x.hooks.lookup != nil {
		return x.hooks.lookup(x.Index, h, key, dst)
	}
	return x.Index.Lookup(h, key, dst)
}

func (x *dumpIndex) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if x.hooks.scan != nil {
		return x.hooks.scan(x.Index, h, r, c, b)
	}
	return x.Index.Scan(h, r, c, b)
}

func (x *dumpIndex) Stats() index.Stats {
	if x.hooks.stats != nil {
		return x.hooks.stats(x.Index.Stats())
	}
	return x.Index.Stats()
}

// BeginCheckpoint captures at once; a real strategy must not take that long.
func (x *dumpIndex) BeginCheckpoint(_ context.Context, n uint64) (index.Capture, error) {
	s := &session{ix: x.Index, h: x.spec.Domain.Register()}
	all, err := s.scan(index.Range{})
	if x.hooks.captured != nil {
		all = x.hooks.captured(all)
	}
	return &dumpCapture{all, n}, err
}

type dumpCapture struct {
	entries []Entry
	n       uint64
}

func (c *dumpCapture) Write(_ context.Context, create func(string) (vfs.File, error)) ([]index.FileInfo, error) {
	var data []byte
	for _, e := range c.entries {
		data = binary.LittleEndian.AppendUint32(data, uint32(len(e.Key)))
		data = append(data, e.Key...)
		data = binary.LittleEndian.AppendUint64(data, uint64(e.Row))
	}
	file, err := create("dump")
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	_, err = file.WriteAt(data, 0)
	err = errors.Join(err, file.Sync(), file.Close())
	info := index.FileInfo{Name: file.Name(), Size: int64(len(data)), Sum: xxhash.Sum64(data), Checkpoint: c.n}
	return []index.FileInfo{info}, err
}

func (*dumpCapture) Published() {}

func (*dumpCapture) Abandon() {}

func TestDumpConforms(t *testing.T) { Run(t, dump{}) }
