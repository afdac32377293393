package iacow

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// draft is the file of a checkpoint and what it refers to, being made. It
// differs from its base in the pages of the node table that have a changed
// shadow.
type draft struct {
	footer
	spec    *index.Spec
	hash    hasher
	base    *image // nil: everything is new
	create  func(ext string) (vfs.File, error)
	out     *output // nil until something is written
	shadows map[uint32]*shadow

	img  []byte // working memory
	node btree.NodeCopy
}

// shadow is a page of the node table as the draft will have it.
type shadow struct {
	words   pageWords
	ref     pageRef // of the page in the base
	changed bool
}

func newDraft(spec *index.Spec, number, salt uint64, base *image, next uint64) draft {
	d := draft{spec: spec, hash: newHasher(identityOf(spec)), base: base, shadows: make(map[uint32]*shadow)}
	if base != nil {
		d.footer = base.footer
		d.places[base.own].sum = base.newest().info.Sum
	}
	d.next, d.pages = next, pagesFor(next)
	d.own = uint64(slices.IndexFunc(d.places[:], func(g generation) bool { return !g.used() }))
	d.places[d.own] = generation{checkpoint: number, salt: salt}
	return d
}

// shadow returns the shadow of a page.
func (d *draft) shadow(number uint32) (*shadow, error) {
	sh := d.shadows[number]
	if sh != nil {
		return sh, nil
	}
	sh = new(shadow)
	if err := d.readBase(number, sh); err != nil {
		return nil, err
	}
	d.shadows[number] = sh
	return sh, nil
}

// readBase fills a shadow with what the base has.
func (d *draft) readBase(number uint32, sh *shadow) (err error) {
	sh.words, sh.ref = pageWords{}, pageRef{}
	if d.base == nil || uint64(number) >= d.base.pages {
		return nil
	}
	if sh.ref, err = d.base.ref(uint64(number)); err != nil {
		return err
	}
	return d.base.readPage(uint64(number), &sh.words)
}

// change marks a shadow: its page moves to the new file.
func (d *draft) change(sh *shadow) {
	if sh.changed {
		return
	}
	sh.changed = true
	if sh.ref.block != 0 {
		d.places[sh.ref.place].live.pages--
	}
	d.places[d.own].live.pages++
}

// set gives an id another entry.
func (d *draft) set(id btree.NodeID, e entry) error {
	sh, err := d.shadow(uint32(id) >> pageShift)
	if err != nil {
		return err
	}
	old := &sh.words[id%pageIDs]
	if *old == e {
		return nil
	}
	d.change(sh)
	d.count(*old, ^uint64(0))
	d.count(e, 1)
	*old = e
	return nil
}

// count adds an entry to the totals n times, modulo 2^64.
func (d *draft) count(e entry, n uint64) {
	if e != 0 {
		d.places[e.place()].live.nodes += uint32(n)
		d.nodes += n
		d.entries += n * uint64(e.count())
	}
}

// put writes a node. Img is its image without a checksum, which is added.
func (d *draft) put(id btree.NodeID, img []byte) error {
	if err := d.open(); err != nil {
		return err
	}
	entries := btree.HeaderOf(unsafePointer(img)).Entries
	block, err := d.out.node(img)
	if err != nil {
		return err
	}
	return d.set(id, makeEntry(int(d.own), block, entries))
}

// open begins the file, if that was not done before.
func (d *draft) open() error {
	if d.out != nil {
		return nil
	}
	f, err := d.create(Extension)
	if err != nil {
		return err
	}
	own := &d.places[d.own]
	d.out = newOutput(f, d.hash.seed(partNode, own.checkpoint, own.salt))
	h := header{identity: identityOf(d.spec), checkpoint: own.checkpoint, salt: own.salt}
	return d.out.write(h.encode())
}

// finish completes the file and opens the checkpoint. It is the base itself if
// nothing differs from that.
func (d *draft) finish(ctx context.Context) (*image, error) {
	if d.out == nil && d.base != nil && !d.anyChanged() {
		return d.base, nil
	}
	for _, step := range []func() error{d.open, d.writePages, d.writeDirectory, d.writeFooter, d.close} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d.openResult(ctx)
}

func (d *draft) anyChanged() bool {
	for _, sh := range d.shadows {
		if sh.changed {
			return true
		}
	}
	return false
}

// writePages writes the changed pages of the node table. Those without nodes
// are not written.
func (d *draft) writePages() error {
	own := &d.places[d.own]
	own.nodes = uint64(d.out.blocks) - 1
	var numbers []uint32
	for number, sh := range d.shadows {
		if sh.changed {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		sh := d.shadows[number]
		if sh.ref = sh.encode(d.hash, number, &d.img); sh.ref.live == 0 {
			sh.ref = pageRef{}
			own.live.pages--
			continue
		}
		sh.ref.place, sh.ref.block = uint8(d.own), d.out.blocks
		if err := d.out.write(d.img); err != nil {
			return err
		}
	}
	return nil
}

// encode sets dst to the bytes of the page and describes it.
func (sh *shadow) encode(h hasher, number uint32, dst *[]byte) (r pageRef) {
	b := (*dst)[:0]
	for _, e := range sh.words {
		b = binary.LittleEndian.AppendUint64(b, uint64(e))
		if e != 0 {
			r.live++
		}
	}
	*dst = b
	r.sum = h.page(uint64(number), b)
	return r
}

// writeDirectory writes the whole directory.
func (d *draft) writeDirectory() error {
	d.directory = uint64(d.out.blocks) * blockBytes
	own := &d.places[d.own]
	for chunk := range chunksFor(d.pages) {
		var b [chunkBytes]byte
		if d.base != nil && chunk < chunksFor(d.base.pages) {
			var err error
			if b, err = d.base.chunk(chunk); err != nil {
				return err
			}
		}
		for i := range uint32(chunkPages) {
			if sh := d.shadows[uint32(chunk)*chunkPages+i]; sh != nil && sh.changed {
				sh.ref.encode(b[chunkSumBytes+i*pageRefBytes:])
			}
		}
		binary.LittleEndian.PutUint64(b[:], d.hash.chunk(own.checkpoint, own.salt, chunk, b[chunkSumBytes:]))
		if err := d.out.write(b[:]); err != nil {
			return err
		}
	}
	return nil
}

// writeFooter drops the generations that nothing refers to any more.
func (d *draft) writeFooter() error {
	for place := range d.places {
		if d.places[place].live == (live{}) && place != int(d.own) {
			d.places[place] = generation{}
		}
	}
	d.fileSize = uint64(d.out.w.Size()) + footerBytes
	d.places[d.own].size = d.fileSize
	return d.out.write(d.footer.encode(d.hash))
}

// openResult reads the file back from its medium and maps it.
func (d *draft) openResult(ctx context.Context) (*image, error) {
	own := &d.places[d.own]
	info := d.out.info(own.checkpoint)
	if err := mapfile.Check(ctx, d.spec.FS, info.Name, info.Size, info.Sum); err != nil {
		return nil, err
	}
	f, _, err := mapFile(d.spec, info)
	if err != nil {
		return nil, err
	}
	im := &image{footer: d.footer, hash: d.hash}
	for place := range d.places {
		if d.places[place].used() && d.base != nil {
			im.files[place] = d.base.files[place]
		}
	}
	im.hold(d.spec, int(d.own), f)
	return im, nil
}

func (d *draft) close() error { return d.out.finish() }

// abort closes the file after an error.
func (d *draft) abort(err error) error {
	if d.out != nil {
		err = errors.Join(err, d.out.close())
	}
	return err
}
