package indirection

import (
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/mapfile"
)

// base is an array's hold on the image that it began with. For every file it
// counts what may still be read from it: pages and patches by the generation
// table, for the newest file also directory chunks not read yet and pages of
// read chunks that nobody has touched. At zero the file is unmapped when the
// readers of that moment have gone.
//
// The counts come from a file, and unmapping too early would be a wild read. So
// the entries of a directory chunk are counted when it is read, and a chunk
// that brings a file above its count is refused as damaged.
type base struct {
	image     Image // a copy, because the opener closes its own
	domain    *epoch.Domain
	remaining [placeCount]atomic.Int64
	claimed   [placeCount]uint64 // refs of the chunks read so far; under Array.mu

	mu  sync.Mutex
	err error // of unmapping, for close
}

func newBase(im *Image, d *epoch.Domain) *base {
	b := &base{image: *im, domain: d}
	for place, f := range b.image.files {
		if f == nil {
			continue
		}
		f.retain()
		n := im.places[place].refs()
		if place == int(im.own) {
			n += im.pias
		}
		b.remaining[place].Store(int64(n))
		if n == 0 {
			b.letGo(place)
		}
	}
	return b
}

// drop gives up n references to a file. The caller is pinned.
func (b *base) drop(place int, n int64) {
	if b.remaining[place].Add(-n) == 0 {
		b.domain.Defer(func() { b.letGo(place) })
	}
}

// dropEntry gives up a page in stateMapped.
func (b *base) dropEntry(e pageEntry) {
	if e.hasBase() {
		b.drop(e.basePlace, 1)
	}
	if e.hasPatch() {
		b.drop(e.patchPlace, 1)
	}
	b.drop(int(b.image.own), 1)
}

func (b *base) letGo(place int) {
	if err := b.image.files[place].release(); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = errors.Join(b.err, err)
	}
}

func (b *base) close() error {
	for place, f := range b.image.files {
		if f != nil && b.remaining[place].Swap(0) > 0 {
			b.letGo(place)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *base) generations() []Generation {
	return b.image.generations(func(place int) bool { return b.remaining[place].Load() > 0 })
}

// claim is what a directory chunk refers to.
type claim struct {
	made  bool
	pages int64
	refs  [placeCount]uint64
}

func (c *claim) add(e pageEntry) {
	c.pages++
	if e.hasBase() {
		c.refs[e.basePlace]++
	}
	if e.hasPatch() {
		c.refs[e.patchPlace]++
	}
}

// accept replaces the reference to a chunk by references to its pages. It
// happens once for a chunk, under Array.mu.
func (b *base) accept(c *claim, pia uint64) error {
	for place, n := range c.refs {
		if n > b.image.places[place].refs()-b.claimed[place] {
			return b.image.corrupt(int(b.image.own), b.image.chunkOffset(pia), chunkBytes,
				"page directory", "refers to a generation more often than the footer says")
		}
	}
	for place, n := range c.refs {
		b.claimed[place] += n
	}
	b.drop(int(b.image.own), 1-c.pages)
	return nil
}

// entry returns the entry of a page in stateMapped.
func (b *base) entry(page uint64) (e pageEntry, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	return b.image.entry(page)
}

// read copies a page in stateMapped, patched and checked.
func (b *base) read(page uint64, dst []byte) (e pageEntry, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	if e, err = b.image.entry(page); err != nil {
		return e, err
	}
	return e, b.image.page(page, e, dst)
}

// verify checks a page in stateMapped that has no patch.
func (b *base) verify(page uint64, e pageEntry) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	return b.image.verifyBase(page, e)
}

// copy copies a verified page.
func (b *base) copy(state uint64, dst []byte) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	copy(dst, b.image.files[verifiedPlace(state)].data[verifiedOffset(state):])
	if !storedWords(dst[:pageBytes]) {
		return b.changed(state)
	}
	return nil
}

// load reads a slot of a verified page.
func (b *base) load(state, slot uint64) (w Word, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), &b.image, &err)
	if w = b.image.files[verifiedPlace(state)].word(verifiedOffset(state) + slot*wordBytes); !w.stored() {
		return 0, b.changed(state)
	}
	return w, nil
}

// changed is the error for a page whose words cannot be those that were verified. The
// system may have dropped it from memory since, and the medium delivered something
// else; its checksum is not compared again, but no word of a file may lead into memory.
func (b *base) changed(state uint64) error {
	return b.image.corrupt(verifiedPlace(state), verifiedOffset(state), pageBytes, "page", "changed after it was verified")
}
