package indirection

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// Generation names one array file.
type Generation struct {
	Number uint64 // of the checkpoint that wrote it
	Path   string
	Size   int64  // bytes
	Sum    uint64 // xxHash64 of the whole file
}

// Image is a table's array as one checkpoint saw it: the newest file and the
// older ones that it refers to, mapped. It is immutable and safe for
// concurrent use.
type Image struct {
	view
	newest Generation
	files  [fileSlots]*mappedFile // nil for places not in use
	fs     vfs.FS
}

// OpenImage opens the image whose newest file is described by newest; path
// gives the name of an older generation's file. It reads the header and the
// footer of the newest file and the headers of the others, compares sizes and
// identities, and maps the files: the work does not depend on the rows. Other
// parts are checked when they are first used.
//
// Errors are fault.ErrMissingFile, ErrFormat, ErrForeignFile, ErrCorrupt, or
// those of the file system.
func OpenImage(fsys vfs.FS, newest Generation, path func(generation uint64) string, id [16]byte) (_ *Image, err error) {
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
	for slot := range im.slots {
		if err := im.open(slot, path); err != nil {
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
func (im *Image) open(slot int, path func(uint64) string) error {
	s := im.slots[slot]
	if !s.used() {
		return nil
	}
	g := im.newest
	if slot != int(im.own) {
		g = Generation{Number: s.generation, Path: path(s.generation), Size: int64(s.size), Sum: s.sum}
		if err := checkOlder(im.fs, g, im.id, im.table); err != nil {
			return err
		}
	}
	f, err := mapGeneration(im.fs, g)
	if err != nil {
		return err
	}
	im.files[slot], im.sources[slot], im.paths[slot] = f, f, g.Path
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

// Table returns the table that the image belongs to.
func (im *Image) Table() rowid.Table { return im.table }

// HighWater returns one past the largest ordinal that can be non-empty.
func (im *Image) HighWater() uint64 { return im.highWater }

// Generations returns the files of the image, oldest first; the last one is
// the newest. They must be kept while the image may be opened.
func (im *Image) Generations() []Generation {
	return im.generations(func(int) bool { return true })
}

func (im *Image) generations(keep func(slot int) bool) []Generation {
	var list []Generation
	for slot, f := range im.files {
		if f != nil && keep(slot) {
			list = append(list, f.info)
		}
	}
	slices.SortFunc(list, func(a, b Generation) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// ReadPage reads the slots [page*PageSlots, (page+1)*PageSlots) into dst. It
// reports false if all of them are empty. What does not match its checksum is
// fault.ErrCorrupt, and then dst is undefined.
func (im *Image) ReadPage(page uint64, dst *[PageSlots]Word) (bool, error) {
	var r pageReader
	var b [pageBytes]byte
	found, err := r.read(im, page, &b)
	if err != nil {
		return false, err
	}
	for slot := range dst {
		dst[slot] = word(b[:], slot)
	}
	return found, nil
}

// Close ends the use of the image by its opener. Arrays that were made from it
// go on; its files stay mapped as long as they need them.
func (im *Image) Close() error {
	var errs []error
	for i, f := range im.files {
		if f != nil {
			errs = append(errs, f.release())
			im.files[i] = nil
		}
	}
	return errors.Join(errs...)
}

// pageReader reads pages of an image in ascending order and checks each
// directory chunk once.
type pageReader struct {
	entries [piaPages]pageEntry
	pia     uint64
	valid   bool
}

// entry returns the entry of a page, the zero entry outside the image.
func (r *pageReader) entry(im *Image, page uint64) (pageEntry, error) {
	pia := piaOfPage(page)
	if !im.hasPIA(pia) {
		return pageEntry{}, nil
	}
	if !r.valid || r.pia != pia {
		r.valid = false
		if err := im.readChunk(pia, &r.entries); err != nil {
			return pageEntry{}, err
		}
		r.pia, r.valid = pia, true
	}
	return r.entries[pageInPIA(page)], nil
}

// read reads a page into dst; false if the image has no rows there, and then
// dst is zero.
func (r *pageReader) read(im *Image, page uint64, dst *[pageBytes]byte) (_ bool, err error) {
	e, err := r.entry(im, page)
	if err != nil || e.empty() {
		clear(dst[:])
		return false, err
	}
	defer im.catchFault(debug.SetPanicOnFault(true), &err)
	return true, im.page(page, e, dst[:])
}

// readBoth reads a page with rows as it is without its patch and with it. Only
// the latter is checked; a wrong base cannot give the right page but in slots
// that the patch replaces.
func (im *Image) readBoth(page uint64, e pageEntry, base, content *[pageBytes]byte) (err error) {
	defer im.catchFault(debug.SetPanicOnFault(true), &err)
	if err := im.base(e, base[:]); err != nil {
		return err
	}
	*content = *base
	if err := im.patch(page, e, content[:]); err != nil {
		return err
	}
	return im.checkPage(page, e, content[:])
}

func (im *Image) readChunk(pia uint64, entries *[piaPages]pageEntry) (err error) {
	defer im.catchFault(debug.SetPanicOnFault(true), &err)
	return im.chunk(pia, entries)
}

// copyChunk copies a checked directory chunk, checksum included.
func (im *Image) copyChunk(pia uint64, dst []byte) (err error) {
	defer im.catchFault(debug.SetPanicOnFault(true), &err)
	b, err := im.rawChunk(pia)
	copy(dst, b)
	return err
}
