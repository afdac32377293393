package indirection

import (
	"runtime/debug"

	"github.com/rekindledb/rekindle/internal/mapfile"
)

// pageReader reads pages of an image in ascending order and checks each
// directory chunk once.
type pageReader struct {
	entries [piaPages]pageEntry
	pia     uint64
	image   *Image // whose chunk that is, nil for none
}

// entry returns the entry of a page, the zero entry outside the image.
func (r *pageReader) entry(im *Image, page uint64) (pageEntry, error) {
	pia := piaOfPage(page)
	if !im.hasPIA(pia) {
		return pageEntry{}, nil
	}
	if r.image != im || r.pia != pia {
		r.image = nil
		if err := im.readChunk(pia, &r.entries); err != nil {
			return pageEntry{}, err
		}
		r.pia, r.image = pia, im
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
	defer mapfile.Catch(debug.SetPanicOnFault(true), im, &err)
	return true, im.page(page, e, dst[:])
}
