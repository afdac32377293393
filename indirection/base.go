package indirection

import (
	"runtime/debug"

	"github.com/rekindledb/rekindle/internal/mapfile"
)

// base is an array's hold on the image that its pages in files are pages of. All
// files of the image stay mapped until the base is closed.
type base struct {
	image Image  // a copy, because the opener closes its own
	bit   uint64 // in the words of its pages: 0 or stateSecond
}

func newBase(im *Image) *base {
	b := &base{image: *im}
	for _, f := range b.image.files {
		if f != nil {
			f.retain()
		}
	}
	return b
}

func (b *base) close() error { return b.image.Close() }

// hasPIA reports whether the base, which may be nil, has a directory chunk for a
// PIA.
func (b *base) hasPIA(pia uint64) bool { return b != nil && b.image.hasPIA(pia) }

// entry returns the entry of a page with rows.
func (b *base) entry(page uint64) (e pageEntry, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	return b.image.entry(page)
}

// read copies a page with rows, patched and checked.
func (b *base) read(page uint64, dst []byte) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	e, err := b.image.entry(page)
	if err != nil {
		return err
	}
	return b.image.page(page, e, dst)
}

// find is read for a page that may have no rows, of a PIA in the directory. It
// returns the page's entry. The page is checked only if the caller says so.
func (b *base) find(page uint64, dst []byte, check bool) (e pageEntry, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	if e, err = b.image.findEntry(page); err != nil || e.empty() {
		return e, err
	}
	if !check {
		return e, b.image.unchecked(page, e, dst)
	}
	return e, b.image.page(page, e, dst)
}

// verify checks a page with rows.
func (b *base) verify(page uint64, e pageEntry) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	if e.inPlace() {
		return b.image.verifyBase(page, e)
	}
	var content [pageBytes]byte
	return b.image.page(page, e, content[:])
}

// copy copies a checked page that has no patch.
func (b *base) copy(state uint64, dst []byte) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	copy(dst, b.image.files[verifiedPlace(state)].data[verifiedOffset(state):])
	if !storedWords(dst[:pageBytes]) {
		return b.changed(state)
	}
	return nil
}

// load reads a slot of a checked page.
func (b *base) load(state, page, slot uint64) (w Word, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	if state&stateOverlay != 0 {
		return b.loadPatched(page, slot)
	}
	if w = b.image.files[verifiedPlace(state)].word(verifiedOffset(state) + slot*wordBytes); !w.stored() {
		return 0, b.changed(state)
	}
	return w, nil
}

// loadPatched is load for a page that has a patch; a fault is caught by the caller.
func (b *base) loadPatched(page, slot uint64) (Word, error) {
	e, err := b.image.entry(page)
	if err != nil {
		return 0, err
	}
	w := b.image.patchedWord(e, slot)
	if !w.stored() {
		return 0, b.image.badPage(e, changedReason)
	}
	return w, nil
}

const changedReason = "changed after it was verified"

// changed is the error for a page whose words cannot be those that were verified. The
// system may have dropped it from memory since, and the medium delivered something
// else; its checksum is not compared again, but no word of a file may lead into memory.
func (b *base) changed(state uint64) error {
	return b.image.corrupt(verifiedPlace(state), verifiedOffset(state), pageBytes, "page", changedReason)
}
