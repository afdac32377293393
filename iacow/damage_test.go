package iacow

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// smallRig has a checkpoint of two small files with short and long keys.
func smallRig(t testing.TB) *rig {
	r := newRig(t)
	for i := range uint64(150) {
		r.insert(pair{integer(i * 1000), rowid.Make(testTable, i+1)})
	}
	for i := range 3 {
		r.insert(pair{fmt.Sprintf("%d%0500d", i, i), rowid.Make(testTable, 1)})
	}
	r.publish()
	r.insert(pair{integer(5500), rowid.Make(testTable, 999)})
	r.publish()
	require.Len(t, r.kept[1].files, 2)
	return r
}

// stride thins out tests that try every byte where all is slow.
func stride() int64 {
	if invariants.Enabled || testing.Short() {
		return 41
	}
	return 1
}

// typed reports whether err is what a damaged file may give.
func typed(err error) bool {
	var f *fault.File
	return errors.As(err, &f) && f.Path != "" &&
		(errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrFormat) || errors.Is(err, fault.ErrForeignFile) || errors.Is(err, fault.ErrMissingFile))
}

// survives opens a checkpoint that may be damaged, reads everything in it and
// changes it. All of it is right or a typed error; it returns one of those.
func (r *rig) survives(files []index.FileInfo) (damage error) {
	x, err := r.tryOpen(files)
	if err != nil {
		require.True(r.t, typed(err), "%v", err)
		return err
	}
	defer func() { require.NoError(r.t, x.Close()) }()
	note := func(err error) {
		if err != nil {
			require.True(r.t, typed(err), "%v", err)
			damage = err
		}
	}
	want := sorted(r.model)
	list, err := scanAll(x, r.h)
	if note(err); err == nil && !slices.Equal(want, list) {
		require.Equal(r.t, want, list)
	}
	for i := 0; i < len(want); i += 3 {
		note(r.survivesKey(x, want[i], i%5 == 0))
	}
	return damage
}

func (r *rig) survivesKey(x *Index, p pair, change bool) error {
	r.h.Pin()
	defer r.h.Unpin()
	rows, err := x.Lookup(r.h, []byte(p.key), nil)
	if err != nil || !change {
		if err == nil {
			require.Contains(r.t, rows, p.row)
		}
		return err
	}
	if err := x.Insert(r.h, []byte(p.key), p.row+1, nil); err != nil {
		return err
	}
	removed, err := x.Remove(r.h, []byte(p.key), p.row, func() bool { return true })
	if err == nil {
		require.True(r.t, removed)
	}
	return err
}

func (r *rig) content(name string) []byte {
	f, err := r.fs.OpenRead(name)
	require.NoError(r.t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(r.t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(r.t, err)
	return b
}

// put replaces a file.
func (r *rig) put(name string, content []byte) {
	require.NoError(r.t, r.fs.Remove(name))
	f, err := r.fs.Create(name)
	require.NoError(r.t, err)
	_, err = f.WriteAt(content, 0)
	require.NoError(r.t, err)
	require.NoError(r.t, f.Close())
}

// verifyAll does at once what the background verifier does.
func (r *rig) verifyAll(files []index.FileInfo) error {
	im, err := openImage(&r.spec, files)
	if err != nil {
		return err
	}
	defer func() { require.NoError(r.t, im.close()) }()
	var errs []error
	for _, c := range im.checks(&r.spec) {
		errs = append(errs, c.run(r.t.Context(), func() {}))
	}
	return errors.Join(errs...)
}

func TestEveryFlippedByte(t *testing.T) {
	r := smallRig(t)
	files := r.kept[1].files
	require.NoError(t, r.survives(files))
	require.NoError(t, r.verifyAll(files))
	for _, info := range files {
		intact := r.content(info.Name)
		found := 0
		for at := int64(0); at < info.Size; at += stride() {
			if at > headerFields && at < blockBytes-8 {
				continue // padding; its end is tried
			}
			damaged := slices.Clone(intact)
			damaged[at] ^= 1 << (at % 8)
			r.put(info.Name, damaged)
			if r.survives(files) != nil {
				found++
			}
			if at%64 == 1 {
				require.True(t, typed(r.verifyAll(files)), "offset %d", at)
			}
		}
		require.Positive(t, found)
		r.put(info.Name, intact)
	}
	require.NoError(t, r.survives(files))
}

// Sectors that are zero although they were written, or hold what belongs
// elsewhere.
func TestEveryLostSector(t *testing.T) {
	const sector = 512
	r := smallRig(t)
	files := r.kept[1].files
	for _, info := range files {
		intact := r.content(info.Name)
		for at := int64(0); at < info.Size; at += sector {
			n := min(sector, info.Size-at)
			for _, from := range [][]byte{make([]byte, n), intact[(at+blockBytes)%(info.Size-n):][:n]} {
				damaged := slices.Clone(intact)
				copy(damaged[at:], from)
				r.put(info.Name, damaged)
				r.survives(files)
			}
		}
		r.put(info.Name, intact)
	}
}

func TestEveryLength(t *testing.T) {
	r := smallRig(t)
	files := r.kept[1].files
	for i, info := range files {
		intact := r.content(info.Name)
		for length := int64(0); length <= info.Size+9; length += stride() {
			if length == info.Size {
				continue
			}
			r.put(info.Name, append(slices.Clone(intact), make([]byte, 9)...)[:length])
			require.ErrorIs(t, r.survives(files), fault.ErrCorrupt, "length %d", length)
			claimed := slices.Clone(files)
			claimed[i].Size = length
			require.ErrorIs(t, r.survives(claimed), fault.ErrCorrupt, "length %d", length)
		}
		r.put(info.Name, intact)
	}
	require.NoError(t, r.survives(files))
}

func TestMissingFiles(t *testing.T) {
	r := smallRig(t)
	files := r.kept[1].files
	for _, info := range files {
		intact := r.content(info.Name)
		require.NoError(t, r.fs.Remove(info.Name))
		handles := r.fs.Handles()
		require.ErrorIs(t, r.survives(files), fault.ErrMissingFile)
		require.Equal(t, handles, r.fs.Handles(), "nothing stays open")
		f, err := r.fs.Create(info.Name)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		r.put(info.Name, intact)
	}
	require.ErrorIs(t, r.survives(files[:1]), fault.ErrMissingFile)
}

// Files that are valid each but do not belong here.
func TestSwappedFiles(t *testing.T) {
	build := func(change func(*index.Spec), from uint64) *rig {
		r := bareRig(t, vfs.NewMem())
		require.NoError(t, r.fs.MkdirAll("/db"))
		if change != nil {
			change(&r.spec)
		}
		ix, err := Strategy{}.Create(r.spec)
		require.NoError(t, err)
		r.x, r.number = ix.(*Index), from
		for i := range uint64(150) {
			r.insert(pair{integer(i * 1001), rowid.Make(testTable, i+1)})
		}
		for i := range 3 {
			r.insert(pair{fmt.Sprintf("%d%0500d", i, i+1), rowid.Make(testTable, 1)})
		}
		r.publish()
		return r
	}
	for _, tt := range []struct {
		name   string
		change func(*index.Spec)
		from   uint64
		want   error
	}{
		{"same checkpoint of another life", nil, 0, fault.ErrCorrupt},
		{"other database", func(s *index.Spec) { s.DatabaseID[3] = 9 }, 0, fault.ErrForeignFile},
		{"other table", func(s *index.Spec) { s.Table++ }, 0, fault.ErrCorrupt},
		{"other index", func(s *index.Spec) { s.Number++ }, 0, fault.ErrCorrupt},
		{"other checkpoint", nil, 5, fault.ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := smallRig(t)
			other := build(tt.change, tt.from)
			files := r.kept[1].files
			old := files[1]
			content := other.content(other.kept[0].files[0].Name)
			require.EqualValues(t, old.Size, len(content))
			r.put(old.Name, content)
			require.ErrorIs(t, r.survives(files), tt.want)
			files[1].Sum = other.kept[0].files[0].Sum
			require.Error(t, r.survives(files))
		})
	}
	r := smallRig(t)
	files := r.kept[1].files
	a, b := r.content(files[0].Name), r.content(files[1].Name)
	r.put(files[0].Name, b)
	r.put(files[1].Name, a)
	require.ErrorIs(t, r.survives(files), fault.ErrCorrupt)
	files[0].Size, files[1].Size = files[1].Size, files[0].Size
	require.ErrorIs(t, r.survives(files), fault.ErrCorrupt)
}

func TestUnknownVersionIsRefused(t *testing.T) {
	r := smallRig(t)
	files := r.kept[1].files
	content := r.content(files[0].Name)
	content[8]++
	r.put(files[0].Name, content)
	require.ErrorIs(t, r.survives(files), fault.ErrFormat)
}

// A checkpoint that has to move a node that is damaged fails, and does not make
// the damage look sound, also if the node was sound when it was first used.
func TestCheckpointOfDamage(t *testing.T) {
	t.Run("early", func(t *testing.T) { checkpointOfDamage(t, false) })
	t.Run("late", func(t *testing.T) { checkpointOfDamage(t, true) })
}

func checkpointOfDamage(t *testing.T, late bool) {
	const entries = 3000
	r := newRig(t)
	for i := range uint64(entries) {
		r.insert(pair{integer(i), 1})
	}
	file := r.publish()[0]
	require.NoError(t, r.x.Close())
	sound := r.content(file.Name)
	r.damageNode(file, integer(entries-1))
	damaged := r.content(file.Name)
	if late {
		r.put(file.Name, sound)
	}
	r.x = r.open(r.kept[0].files)
	for i := range uint64(entries * 3 / 4) {
		r.insert(pair{integer(i), 2})
	}
	if late {
		_, err := r.lookup(integer(entries - 1))
		require.NoError(t, err)
		for i := range r.x.store.files {
			if f := r.x.store.files[i].Load(); f != nil {
				copy(f.data, damaged) // a mapping of memory
			}
		}
	}
	c := r.begin()
	_, err := c.Write(t.Context(), r.create(r.number))
	require.True(t, typed(err), "%v", err)
	c.Abandon()
	r.letGo()
	if !late {
		_, err = r.lookup(integer(entries - 1))
		require.True(t, typed(err), "%v", err)
	}
	rows, err := r.lookup(integer(7))
	require.NoError(t, err)
	require.Len(t, rows, 2)
}

func (r *rig) lookup(key string) ([]rowid.ID, error) {
	r.h.Pin()
	defer r.h.Unpin()
	return r.x.Lookup(r.h, []byte(key), nil)
}

// damageNode damages the leaf that has a key.
func (r *rig) damageNode(file index.FileInfo, key string) {
	intact := r.content(file.Name)
	for block := 1; ; block++ {
		damaged := slices.Clone(intact)
		damaged[block*blockBytes+100] ^= 1
		r.put(file.Name, damaged)
		x := r.open([]index.FileInfo{file})
		r.h.Pin()
		_, first := x.Lookup(r.h, []byte(integer(0)), nil)
		_, err := x.Lookup(r.h, []byte(key), nil)
		r.h.Unpin()
		require.NoError(r.t, x.Close())
		if err != nil && first == nil {
			return
		}
	}
}
