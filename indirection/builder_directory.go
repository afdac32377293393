package indirection

import (
	"encoding/binary"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// chunkEditor is a directory chunk whose entries change.
type chunkEditor struct {
	open    bool
	changed bool
	pia     uint64
	entries [piaPages]pageEntry
}

// builtChunk is a changed directory chunk, ready to be written.
type builtChunk struct {
	pia  uint64
	data []byte
}

// loadChunk makes a PIA's directory chunk the current one.
func (b *Builder) loadChunk(pia uint64) error {
	if b.chunk.open && b.chunk.pia == pia {
		return nil
	}
	if err := b.closeChunk(); err != nil {
		return err
	}
	b.chunk = chunkEditor{open: true, pia: pia}
	if b.prev == nil || !b.prev.hasPIA(pia) {
		return nil
	}
	if err := b.prev.readChunk(pia, &b.chunk.entries); err != nil {
		return err
	}
	for _, e := range b.chunk.entries {
		if e.refersTo(^b.kept) {
			return b.errCounts()
		}
	}
	return nil
}

// errCounts blames the generation table of the previous image: a generation
// without pages by that table has pages.
func (b *Builder) errCounts() error {
	p := b.prev.newest
	return fault.Corrupt(p.Path, p.Size-footerBytes, footerBytes, "array footer: wrong count of pages")
}

// closeChunk keeps the current chunk, if it changed, until the directory is
// written.
func (b *Builder) closeChunk() error {
	c := &b.chunk
	if !c.open || !c.changed {
		return nil
	}
	c.open = false
	if err := b.cover(c.pia); err != nil {
		return err
	}
	data := make([]byte, chunkBytes)
	for i, e := range c.entries {
		e.put(data[8+i*pageEntryBytes:])
	}
	b.done = append(b.done, builtChunk{c.pia, data})
	return nil
}

// cover extends the directory to a PIA.
func (b *Builder) cover(pia uint64) error {
	first, end := b.firstPIA, b.firstPIA+b.pias
	if b.pias == 0 {
		first, end = pia, pia+1
	}
	first, end = min(first, pia), max(end, pia+1)
	if end-first > maxSpan {
		return errSpan(pia << piaShift)
	}
	b.firstPIA, b.pias = first, end-first
	return nil
}

// Finish completes the file and syncs it; the caller closes it. highWater is one
// past the largest ordinal that can be non-empty.
func (b *Builder) Finish(highWater uint64) (Generation, error) {
	if b.err == nil {
		b.err = b.finish(highWater)
	}
	if b.err != nil {
		return Generation{}, b.err
	}
	b.err = errFinished
	return Generation{Number: b.gen, Path: b.out.Name(), Size: b.w.Size(), Sum: b.w.Sum64()}, nil
}

func (b *Builder) finish(highWater uint64) error {
	if err := b.closePage(); err != nil {
		return err
	}
	if err := b.sweep(pageEnd); err != nil {
		return err
	}
	if err := b.closeChunk(); err != nil {
		return err
	}
	b.places[b.own].patches = uint64(b.w.Size())
	if err := b.write(b.patches); err != nil {
		return err
	}
	if err := b.writeDirectory(); err != nil {
		return err
	}
	if highWater < b.highest || highWater > ordinalEnd {
		return fmt.Errorf("indirection: high-water mark %d, but there are rows up to %d at least", highWater, b.highest-1)
	}
	return b.writeFooter(highWater)
}

// writeDirectory writes all chunks: changed ones, those of the previous image,
// and empty ones between them.
func (b *Builder) writeDirectory() error {
	b.directory = uint64(b.w.Size())
	for i := range b.places {
		b.places[i].pageRefs, b.places[i].patchRefs = 0, 0
	}
	done := b.done
	for pia := b.firstPIA; pia < b.firstPIA+b.pias; pia++ {
		data := make([]byte, chunkBytes)
		if len(done) > 0 && done[0].pia == pia {
			data, done = done[0].data, done[1:]
		} else if b.prev != nil && b.prev.hasPIA(pia) {
			if err := b.carry(pia, data); err != nil {
				return err
			}
		}
		b.tally(pia, data)
		binary.LittleEndian.PutUint64(data, b.hash.chunk(b.gen, pia, data[8:]))
		if err := b.write(data); err != nil {
			return err
		}
	}
	return nil
}

// carry copies a chunk of the previous image.
func (b *Builder) carry(pia uint64, data []byte) error {
	if err := b.prev.copyChunk(pia, data); err != nil {
		return err
	}
	for i := range piaPages {
		if decodeEntry(data[8+i*pageEntryBytes:]).refersTo(^(b.kept &^ b.victims)) {
			return b.errCounts()
		}
	}
	return nil
}

// tally counts what a chunk refers to, and sees to it that the high-water mark
// will be above its last page.
func (b *Builder) tally(pia uint64, data []byte) {
	for i := range uint64(piaPages) {
		e := decodeEntry(data[8+i*pageEntryBytes:])
		if e.empty() {
			continue
		}
		b.highest = max(b.highest, pia<<piaShift+i<<pageShift+1)
		if e.hasBase() {
			b.places[e.basePlace].pageRefs++
		}
		if e.hasPatch() {
			b.places[e.patchPlace].patchRefs++
		}
	}
}

func (b *Builder) writeFooter(highWater uint64) error {
	own := &b.places[b.own]
	own.generation, own.size = b.gen, uint64(b.w.Size())+footerBytes
	b.fileSize, b.highWater = own.size, highWater
	for i, s := range b.places {
		if s.refs() == 0 && uint64(i) != b.own {
			b.places[i] = filePlace{}
		}
	}
	if err := b.write(b.footer.encode(b.hash, b.gen)); err != nil {
		return err
	}
	return b.w.Finish()
}
