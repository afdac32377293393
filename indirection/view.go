package indirection

import (
	"encoding/binary"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// source is the content of one array file.
type source interface {
	// view returns n bytes at offset, valid until the next call. The range
	// lies in the file.
	view(offset uint64, n int) ([]byte, error)
}

// view reads the parts of an image and checks each of them. The sources are
// mappings in an Image and files in Verify.
type view struct {
	hash  hasher
	table rowid.Table
	id    [16]byte
	footer
	paths   [placeCount]string
	sources [placeCount]source
}

func (v *view) generation() uint64 { return v.places[v.own].generation }

func (v *view) chunkOffset(pia uint64) uint64 {
	return v.directory + (pia-v.firstPIA)*chunkBytes
}

// hasPIA reports whether the image has a directory chunk for the PIA; without
// one all its slots are empty.
func (v *view) hasPIA(pia uint64) bool { return pia-v.firstPIA < v.pias }

func (v *view) corrupt(place int, offset uint64, length int, part, reason string) error {
	return fault.Corrupt(v.paths[place], int64(offset), int64(length), "%s: %s", part, reason)
}

// rawChunk returns the directory chunk of a PIA that the image has, with the
// right checksum.
func (v *view) rawChunk(pia uint64) ([]byte, error) {
	offset := v.chunkOffset(pia)
	b, err := v.sources[v.own].view(offset, chunkBytes)
	if err != nil {
		return nil, err
	}
	if v.hash.chunk(v.generation(), pia, b[8:]) != binary.LittleEndian.Uint64(b) {
		return nil, v.corrupt(int(v.own), offset, chunkBytes, "page directory", "checksum")
	}
	return b, nil
}

// chunk reads and checks the directory chunk of a PIA that the image has.
func (v *view) chunk(pia uint64, entries *[piaPages]pageEntry) error {
	b, err := v.rawChunk(pia)
	if err != nil {
		return err
	}
	for i := range entries {
		at := 8 + i*pageEntryBytes
		e := decodeEntry(b[at:])
		if reason := e.check(&v.places); reason != "" {
			return v.corrupt(int(v.own), v.chunkOffset(pia)+uint64(at), pageEntryBytes, "page directory", reason)
		}
		entries[i] = e
	}
	return nil
}

// entry reads the entry of one page from a chunk that was checked before. The
// page has rows.
func (v *view) entry(page uint64) (pageEntry, error) {
	e, err := v.findEntry(page)
	if err == nil && e.empty() {
		err = v.corrupt(int(v.own), v.entryOffset(page), pageEntryBytes, "page directory", "page is gone")
	}
	return e, err
}

// findEntry is entry for a page that may have none.
func (v *view) findEntry(page uint64) (pageEntry, error) {
	b, err := v.sources[v.own].view(v.entryOffset(page), pageEntryBytes)
	if err != nil {
		return pageEntry{}, err
	}
	e := decodeEntry(b)
	if reason := e.check(&v.places); reason != "" {
		return e, v.corrupt(int(v.own), v.entryOffset(page), pageEntryBytes, "page directory", reason)
	}
	return e, nil
}

func (v *view) entryOffset(page uint64) uint64 {
	return v.chunkOffset(piaOfPage(page)) + 8 + pageInPIA(page)*pageEntryBytes
}

// page reads and checks a page into dst, in file order.
func (v *view) page(page uint64, e pageEntry, dst []byte) error {
	if err := v.unchecked(page, e, dst); err != nil {
		return err
	}
	return v.checkPage(page, e, dst)
}

// unchecked reads a page.
func (v *view) unchecked(page uint64, e pageEntry, dst []byte) error {
	if err := v.base(e, dst); err != nil {
		return err
	}
	return v.patch(page, e, dst)
}

// base reads the base of a page, unchecked.
func (v *view) base(e pageEntry, dst []byte) error {
	if !e.hasBase() {
		clear(dst)
		return nil
	}
	b, err := v.sources[e.basePlace].view(e.baseOffset(), pageBytes)
	if err == nil {
		copy(dst, b)
	}
	return err
}

// patch replaces the slots of a base by those of the page's patch.
func (v *view) patch(page uint64, e pageEntry, dst []byte) error {
	if !e.hasPatch() {
		return nil
	}
	s := &v.places[e.patchPlace]
	offset, size := e.patchOffset(s), patchSize(e.patched)
	b, err := v.sources[e.patchPlace].view(offset, size)
	if err != nil {
		return err
	}
	if reason := applyPatch(b, v.hash, s.generation, page, e.patched, dst); reason != "" {
		return v.corrupt(e.patchPlace, offset, size, "patch", reason)
	}
	return nil
}

// checkPage compares a page's content with its entry. A patch was checked on
// its own, so the base is to blame.
func (v *view) checkPage(page uint64, e pageEntry, content []byte) error {
	reason := "checksum"
	if v.hash.page(page, content) == e.sum {
		if storedWords(content) {
			return nil
		}
		reason = "holds a word that is no log address"
	}
	return v.badPage(e, reason)
}

// badPage is the error for a page with rows.
func (v *view) badPage(e pageEntry, reason string) error {
	if e.hasBase() {
		return v.corrupt(e.basePlace, e.baseOffset(), pageBytes, "page", reason)
	}
	return v.corrupt(e.patchPlace, e.patchOffset(&v.places[e.patchPlace]), patchSize(e.patched), "page", reason)
}

// verifyBase checks a page that has no patch without copying it.
func (v *view) verifyBase(page uint64, e pageEntry) error {
	b, err := v.sources[e.basePlace].view(e.baseOffset(), pageBytes)
	if err != nil {
		return err
	}
	return v.checkPage(page, e, b)
}
