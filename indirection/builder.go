package indirection

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// Builder writes the next generation of an image: the previous image with some
// words changed. Its memory grows with the changed pages (their patches and
// the directory chunks above them), not with the image. It is for one
// goroutine.
//
// After an error every call returns that error, and the file is of no use.
type Builder struct {
	prev *Image // nil: everything was empty
	out  vfs.File
	w    *vfs.PacedWriter
	hash hasher
	gen  uint64
	err  error

	footer              // of the image being built
	kept    uint16      // places of generations that prev refers to
	victims uint16      // those of them that must not be referred to any more
	next    uint64      // first ordinal that Change still takes
	highest uint64      // one past the last row that is known of
	chunk   chunkEditor // PIA of the current page
	page    pageEditor  // current page
	done    []builtChunk
	swept   uint64 // pages below were looked at for victims
	blocks  uint64 // file offset / pageBytes of the next page
	patches []byte
}

// pageEditor is a page whose words change.
type pageEditor struct {
	open    bool
	changed bool
	number  uint64
	entry   pageEntry       // in the previous image
	base    [pageBytes]byte // of the previous image's page, zero without one
	content [pageBytes]byte
}

// set changes a slot and returns its old word.
func (p *pageEditor) set(slot int, w Word) Word {
	old := word(p.content[:], slot)
	if old != w {
		putWord(p.content[:], slot, w)
		p.changed = true
	}
	return old
}

// NewBuilder begins generation gen of a table's image in the empty file out.
// The number is above those of prev, and prev stays open until Finish.
func NewBuilder(prev *Image, out vfs.File, gen uint64, table rowid.Table, id [16]byte) *Builder {
	b := &Builder{prev: prev, out: out, hash: newHasher(id, table), gen: gen, blocks: headerBytes / pageBytes}
	b.w = vfs.NewPacedWriter(out, 0)
	if prev != nil {
		b.err = b.inherit(table, id)
	}
	if b.err == nil {
		b.own = b.freePlace()
		b.err = b.write(header{table: table, id: id, generation: gen}.encode())
	}
	return b
}

// inherit takes over what the new image has in common with the previous one.
func (b *Builder) inherit(table rowid.Table, id [16]byte) error {
	p := b.prev
	if p.table != table || p.id != id || p.newest.Number >= b.gen {
		return fmt.Errorf("indirection: image of table %d, generation %d cannot precede generation %d of table %d",
			p.table, p.newest.Number, b.gen, table)
	}
	b.firstPIA, b.pias, b.places = p.firstPIA, p.pias, p.places
	b.places[p.own].sum = p.newest.Sum
	for i, s := range b.places {
		if s.refs() == 0 {
			b.places[i] = filePlace{}
		} else {
			b.kept |= 1 << i
		}
	}
	for n := bits.OnesCount16(b.kept); n > MaxGenerations-1; n-- {
		b.victims |= 1 << b.smallest()
	}
	return nil
}

// smallest is the place of the generation with the fewest pages that is no
// victim yet.
func (b *Builder) smallest() (place int) {
	least := uint64(math.MaxUint64)
	for i, s := range b.places {
		if b.kept&^b.victims>>i&1 != 0 && s.refs() < least {
			place, least = i, s.refs()
		}
	}
	return place
}

// freePlace is a place of no generation; most places are free.
func (b *Builder) freePlace() uint64 { return uint64(bits.TrailingZeros16(^b.kept)) }

// Change gives the ordinal the word w, which is 0 or a log address, and returns
// the word that the previous image has there. Ordinals ascend strictly.
func (b *Builder) Change(ordinal uint64, w Word) (old Word, err error) {
	if b.err == nil {
		b.err = b.accept(ordinal, w)
	}
	if b.err == nil {
		b.err = b.open(pageOf(ordinal))
	}
	if b.err != nil {
		return 0, b.err
	}
	b.next = ordinal + 1
	if w != 0 {
		b.highest = b.next
	}
	return b.page.set(int(slotIn(ordinal)), w), nil
}

// Word returns the word that the previous image has for an ordinal. The next
// Change may be of that ordinal, not of one before it.
func (b *Builder) Word(ordinal uint64) (Word, error) {
	if b.err == nil {
		b.err = b.accept(ordinal, 0)
	}
	if b.err == nil {
		b.err = b.open(pageOf(ordinal))
	}
	if b.err != nil {
		return 0, b.err
	}
	b.next = ordinal
	return word(b.page.content[:], int(slotIn(ordinal))), nil
}

func (b *Builder) accept(ordinal uint64, w Word) error {
	if ordinal < b.next || ordinal > rowid.MaxOrdinal {
		return fmt.Errorf("indirection: change of ordinal %d, expected one from %d on", ordinal, b.next)
	}
	if w.IsRef() {
		return fmt.Errorf("indirection: change of ordinal %d to %v: not in the log", ordinal, w)
	}
	return nil
}

// open makes a page the current one.
func (b *Builder) open(page uint64) error {
	if b.page.open && b.page.number == page {
		return nil
	}
	if err := b.closePage(); err != nil {
		return err
	}
	if err := b.sweep(page); err != nil {
		return err
	}
	return b.load(page)
}

// sweep rewrites the pages of victims before page end. Pages are passed in
// ascending order, each once.
func (b *Builder) sweep(end uint64) error {
	if b.victims == 0 {
		return nil
	}
	page := max(b.swept, b.prev.firstPIA*piaPages)
	for ; page < min(end, (b.prev.firstPIA+b.prev.pias)*piaPages); page++ {
		if err := b.loadChunk(piaOfPage(page)); err != nil {
			return err
		}
		if !b.chunk.entries[pageInPIA(page)].refersTo(b.victims) {
			continue
		}
		if err := b.load(page); err != nil {
			return err
		}
		if err := b.closePage(); err != nil {
			return err
		}
	}
	b.swept = end + 1 // end itself is opened next
	return nil
}

// load reads a page of the previous image and makes it the current one.
func (b *Builder) load(page uint64) error {
	if err := b.loadChunk(piaOfPage(page)); err != nil {
		return err
	}
	e := b.chunk.entries[pageInPIA(page)]
	b.page = pageEditor{open: true, number: page, entry: e}
	if e.empty() {
		return nil
	}
	return b.prev.readBoth(page, e, &b.page.base, &b.page.content)
}

// closePage puts the current page into the file and its directory chunk.
func (b *Builder) closePage() error {
	p := &b.page
	if !p.open {
		return nil
	}
	p.open = false
	if !p.changed && !p.entry.refersTo(b.victims) {
		return nil
	}
	e, err := b.store(p)
	if err != nil {
		return err
	}
	b.chunk.entries[pageInPIA(p.number)] = e
	b.chunk.changed = true
	return nil
}

// store writes a page as a patch of its base if that is small enough, as a
// patch of an empty page, or whole.
func (b *Builder) store(p *pageEditor) (pageEntry, error) {
	live := liveSlots(&p.content)
	if live == 0 {
		return pageEntry{}, nil
	}
	e := pageEntry{live: live, sum: b.hash.page(p.number, p.content[:])}
	if old := p.entry; old.hasBase() && b.victims>>old.basePlace&1 == 0 {
		if n := differing(&p.base, &p.content); n <= maxPatchSlots {
			e.base, e.basePlace = old.base, old.basePlace
			err := b.addPatch(&e, p.number, n, &p.base, &p.content)
			return e, err
		}
	}
	var err error
	if live <= maxPatchSlots {
		err = b.addPatch(&e, p.number, live, &emptyPage, &p.content)
	} else {
		err = b.addPage(&e, &p.content)
	}
	return e, err
}

// addPatch stores the n slots in which content differs from base.
func (b *Builder) addPatch(e *pageEntry, page uint64, n int, base, content *[pageBytes]byte) error {
	if n == 0 {
		return nil
	}
	unit := uint64(len(b.patches))/wordBytes + 1
	if unit > math.MaxUint32 {
		return errTooLarge
	}
	e.patch, e.patchPlace, e.patched = uint32(unit), int(b.own), n
	b.patches = appendPatch(b.patches, b.hash, b.gen, page, n, base, content)
	return nil
}

// addPage stores a whole page.
func (b *Builder) addPage(e *pageEntry, content *[pageBytes]byte) error {
	if b.blocks > math.MaxUint32 {
		return errTooLarge
	}
	e.base, e.basePlace = uint32(b.blocks), int(b.own)
	b.blocks++
	return b.write(content[:])
}

func (b *Builder) write(p []byte) error {
	_, err := b.w.Write(p)
	return err
}

var (
	errTooLarge = errors.New("indirection: array file is too large for its format")
	errFinished = errors.New("indirection: builder was finished")
)
