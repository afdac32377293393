package indirection

import (
	"errors"
	"fmt"
	"io"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// OpenImage opens the image whose newest file is described by newest; path
// gives the place of the file of a generation. It maps the files, reads the header
// and the footer of the newest and the headers of the others, and compares sizes
// and identities: the work does not depend on the rows. Other
// parts are checked when they are first used.
//
// Errors are fault.ErrMissingFile, ErrFormat, ErrForeignFile, ErrCorrupt, or
// those of the file system.
func OpenImage(fsys vfs.FS, newest Generation, path func(generation uint64) string, id [16]byte) (_ *Image, err error) {
	newest.Path = path(newest.Number)
	im := &Image{newest: newest, fs: fsys}
	im.id = id
	own, h, err := mapGeneration(fsys, newest, id)
	if err != nil {
		return nil, err
	}
	im.table, im.hash = h.table, newHasher(h.id, h.table)
	if im.footer, err = own.footer(im.hash); err != nil {
		return nil, joinClose(err, own.mapping)
	}
	im.hold(int(im.own), own)
	for place := range im.places {
		if err := im.openOlder(place, path); err != nil {
			return nil, errors.Join(err, im.Close())
		}
	}
	return im, nil
}

func (im *Image) hold(place int, f *mappedFile) {
	im.files[place], im.sources[place], im.paths[place] = f, f, f.info.Path
}

// openOlder maps and checks the file at a place of the generation table, if there is
// one and it is not the newest.
func (im *Image) openOlder(place int, path func(uint64) string) error {
	p := im.places[place]
	if !p.used() || place == int(im.own) {
		return nil
	}
	g := Generation{Number: p.generation, Path: path(p.generation), Size: int64(p.size), Sum: p.sum}
	f, h, err := mapGeneration(im.fs, g, im.id)
	if err != nil {
		return err
	}
	if h.table != im.table {
		return joinClose(fault.Corrupt(g.Path, 0, headerFields, "array file of table %d, should be %d", h.table, im.table), f.mapping)
	}
	im.hold(place, f)
	return nil
}

// check compares an identity with the expected one.
func (h header) check(g Generation, id [16]byte) error {
	if h.id != id {
		return &fault.File{Kind: fault.ErrForeignFile, Path: g.Path, Length: headerFields, Reason: "array file with another database id"}
	}
	if h.generation != g.Number {
		return fault.Corrupt(g.Path, 0, headerFields, "array file of generation %d, should be %d", h.generation, g.Number)
	}
	return nil
}

// readFull fills b from a range that should lie in the file.
func readFull(f vfs.File, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fault.Corrupt(f.Name(), offset, int64(len(b)), "file ends after %d bytes", n)
	}
	return fmt.Errorf("read %s: %w", f.Name(), err)
}

func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }
