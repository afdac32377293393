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
	return b.prev.readChunk(pia, &b.chunk.entries)
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
	b.slots[b.own].patches = uint64(b.w.Size())
	if err := b.write(b.patches); err != nil {
		return err
	}
	lowest, err := b.writeDirectory()
	if err != nil {
		return err
	}
	if lowest = max(lowest, b.highest); highWater < lowest || highWater > ordinalEnd {
		return fmt.Errorf("indirection: high-water mark %d, but there are rows up to %d at least", highWater, lowest-1)
	}
	return b.writeFooter(highWater)
}

// writeDirectory writes all chunks: changed ones, those of the previous image,
// and empty ones between them. It returns a lower bound of the high-water mark:
// one past the first ordinal of the last page with rows.
func (b *Builder) writeDirectory() (lowest uint64, err error) {
	b.directory = uint64(b.w.Size())
	done := b.done
	for pia := b.firstPIA; pia < b.firstPIA+b.pias; pia++ {
		data := make([]byte, chunkBytes)
		if len(done) > 0 && done[0].pia == pia {
			data, done = done[0].data, done[1:]
		} else if b.prev != nil && b.prev.hasPIA(pia) {
			if err := b.prev.copyChunk(pia, data); err != nil {
				return 0, err
			}
		}
		if page, any := lastPage(data); any {
			lowest = pia<<piaShift + page<<pageShift + 1
		}
		binary.LittleEndian.PutUint64(data, b.hash.chunk(b.gen, pia, data[8:]))
		if err := b.write(data); err != nil {
			return 0, err
		}
	}
	return lowest, nil
}

// lastPage is the last page with rows in a directory chunk.
func lastPage(chunk []byte) (page uint64, any bool) {
	for i := piaPages - 1; i >= 0; i-- {
		if !decodeEntry(chunk[8+i*pageEntryBytes:]).empty() {
			return uint64(i), true
		}
	}
	return 0, false
}

func (b *Builder) writeFooter(highWater uint64) error {
	own := &b.slots[b.own]
	own.generation, own.size = b.gen, uint64(b.w.Size())+footerBytes
	b.fileSize, b.highWater = own.size, highWater
	for i, s := range b.slots {
		if b.victims>>i&1 != 0 && s.refs() != 0 {
			p := b.prev.newest
			return fault.Corrupt(p.Path, p.Size-footerBytes, footerBytes, "array footer: wrong count of pages in generation %d", s.generation)
		}
		if s.refs() == 0 && uint64(i) != b.own {
			b.slots[i] = fileSlot{}
		}
	}
	if err := b.write(b.footer.encode(b.hash, b.gen)); err != nil {
		return err
	}
	return b.w.Finish()
}
