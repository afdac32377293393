package indirection

import (
	"cmp"
	"errors"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// Generation names one array file.
type Generation struct {
	Number uint64 // of the checkpoint that wrote it
	Path   string `json:"-"` // where it is now: a database can be moved
	Size   int64  // bytes
	Sum    uint64 // xxHash64 of the whole file
}

// Image is a table's array as one checkpoint saw it: the newest file and the
// older ones that it refers to, mapped. It is immutable and safe for
// concurrent use.
type Image struct {
	view
	newest Generation
	files  [placeCount]*mappedFile // nil for places not in use
	fs     vfs.FS
}

// Table returns the table that the image belongs to.
func (im *Image) Table() rowid.Table { return im.table }

// HighWater returns one past the largest ordinal that can be non-empty.
func (im *Image) HighWater() uint64 { return im.highWater }

// Generations returns the files of the image, oldest first; the last one is
// the newest. They must be kept while the image may be opened.
func (im *Image) Generations() []Generation {
	return im.generations(func(int) bool { return true })
}

func (im *Image) generations(keep func(place int) bool) []Generation {
	var list []Generation
	for place, f := range im.files {
		if f != nil && keep(place) {
			list = append(list, f.info)
		}
	}
	slices.SortFunc(list, func(a, b Generation) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Pages are the numbers of the pages that can have rows, ascending: those that the
// directory has room for, wherever the first of them is.
func (im *Image) Pages() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range im.pias * piaPages {
			if !yield(im.firstPIA*piaPages + i) {
				return
			}
		}
	}
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

// readBoth reads a page with rows as it is without its patch and with it. Only
// the latter is checked; a wrong base cannot give the right page but in slots
// that the patch replaces.
func (im *Image) readBoth(page uint64, e pageEntry, base, content *[pageBytes]byte) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), im, &err)
	if err := im.base(e, base[:]); err != nil {
		return err
	}
	*content = *base
	if err := im.patch(page, e, content[:]); err != nil {
		return err
	}
	return im.checkPage(page, e, content[:])
}

// patchedWord reads a slot of a page that was checked.
func (im *Image) patchedWord(e pageEntry, slot uint64) Word {
	if e.hasPatch() {
		b := im.files[e.patchPlace].data[e.patchOffset(&im.places[e.patchPlace]):][:patchSize(e.patched)]
		if w, found := findPatched(b, e.patched, slot); found {
			return w
		}
	}
	if !e.hasBase() {
		return 0
	}
	return im.files[e.basePlace].word(e.baseOffset() + slot*wordBytes)
}

func (im *Image) readChunk(pia uint64, entries *[piaPages]pageEntry) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), im, &err)
	return im.chunk(pia, entries)
}

// copyChunk copies a checked directory chunk, checksum included.
func (im *Image) copyChunk(pia uint64, dst []byte) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), im, &err)
	b, err := im.rawChunk(pia)
	copy(dst, b)
	return err
}
