package indirection

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// OpenImage opens the image whose newest file is described by newest; path
// gives the place of the file of a generation. It reads the header and the
// footer of the newest file and the headers of the others, compares sizes and
// identities, and maps the files: the work does not depend on the rows. Other
// parts are checked when they are first used.
//
// Errors are fault.ErrMissingFile, ErrFormat, ErrForeignFile, ErrCorrupt, or
// those of the file system.
func OpenImage(fsys vfs.FS, newest Generation, path func(generation uint64) string, id [16]byte) (_ *Image, err error) {
	newest.Path = path(newest.Number)
	im := &Image{newest: newest, fs: fsys}
	im.id = id
	defer func() {
		if err != nil {
			err = errors.Join(err, im.Close())
		}
	}()
	if err := im.readLayout(); err != nil {
		return nil, err
	}
	for place := range im.places {
		if err := im.open(place, path); err != nil {
			return nil, err
		}
	}
	return im, nil
}

// readLayout reads the header and the footer of the newest file.
func (im *Image) readLayout() (err error) {
	f, h, err := openGeneration(im.fs, im.newest, im.id)
	if err != nil {
		return err
	}
	defer func() { err = joinClose(err, f) }()
	im.table, im.hash = h.table, newHasher(h.id, h.table)
	im.footer, err = readFooter(f, im.newest.Size, im.hash, im.newest.Number)
	return err
}

// open checks and maps the file at a place of the generation table.
func (im *Image) open(place int, path func(uint64) string) error {
	p := im.places[place]
	if !p.used() {
		return nil
	}
	g := im.newest
	if place != int(im.own) {
		g = Generation{Number: p.generation, Path: path(p.generation), Size: int64(p.size), Sum: p.sum}
		if err := checkOlder(im.fs, g, im.id, im.table); err != nil {
			return err
		}
	}
	f, err := mapGeneration(im.fs, g)
	if err != nil {
		return err
	}
	im.files[place], im.sources[place], im.paths[place] = f, f, g.Path
	return nil
}

// openGeneration opens a file and checks that it is the one that g names.
func openGeneration(fsys vfs.FS, g Generation, id [16]byte) (vfs.File, header, error) {
	f, err := fsys.OpenRead(g.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, header{}, &fault.File{Kind: fault.ErrMissingFile, Path: g.Path, Reason: "array file of the checkpoint"}
	}
	if err != nil {
		return nil, header{}, err
	}
	h, err := readHeader(f, g, id)
	if err != nil {
		return nil, header{}, joinClose(err, f)
	}
	return f, h, nil
}

func readHeader(f vfs.File, g Generation, id [16]byte) (header, error) {
	size, err := f.Size()
	if err != nil {
		return header{}, err
	}
	if size != g.Size || size < headerBytes+footerBytes {
		return header{}, fault.Corrupt(g.Path, 0, 0, "array file has %d bytes, should have %d", size, g.Size)
	}
	b := make([]byte, headerFields)
	if err := readFull(f, b, 0); err != nil {
		return header{}, err
	}
	h, err := decodeHeader(g.Path, b)
	if err != nil {
		return header{}, err
	}
	return h, h.check(g, id)
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

// checkOlder checks the file of an older generation.
func checkOlder(fsys vfs.FS, g Generation, id [16]byte, table rowid.Table) error {
	f, h, err := openGeneration(fsys, g, id)
	if err != nil {
		return err
	}
	if h.table != table {
		err = fault.Corrupt(g.Path, 0, headerFields, "array file of table %d, should be %d", h.table, table)
	}
	return joinClose(err, f)
}

func readFooter(f vfs.File, size int64, h hasher, generation uint64) (footer, error) {
	b := make([]byte, footerBytes)
	if err := readFull(f, b, size-footerBytes); err != nil {
		return footer{}, err
	}
	return decodeFooter(f.Name(), b, size, h, generation)
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
