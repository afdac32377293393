package iacow

import (
	"errors"
	"io/fs"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// file is a mapped node file.
type file struct {
	info    index.FileInfo
	nodes   uint32 // blocks 1 … nodes are nodes
	seed    uint64 // of their checksums
	mapping vfs.Mapping
	data    []byte
	checked checkedBits
}

// mapFile maps a file and checks that it is the one that info names.
func mapFile(spec *index.Spec, info index.FileInfo) (*file, header, error) {
	m, err := spec.FS.Map(info.Name, info.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, header{}, &fault.File{Kind: fault.ErrMissingFile, Path: info.Name, Reason: "node file of the checkpoint"}
	}
	if err != nil {
		return nil, header{}, err
	}
	f := &file{info: info, mapping: m, data: m.Bytes()}
	h, err := f.header(spec)
	if err != nil {
		return nil, header{}, joinClose(err, m)
	}
	return f, h, nil
}

// header reads the header of a file, whose size may be too small for any.
func (f *file) header(spec *index.Spec) (h header, err error) {
	if f.info.Size < blockBytes+footerBytes {
		return h, fault.Corrupt(f.info.Name, 0, 0, "node file of %d bytes", f.info.Size)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	if h, err = decodeHeader(f.info.Name, f.data[:headerFields]); err != nil {
		return h, err
	}
	return h, h.belongs(spec, f.info)
}

// footer reads the footer of the newest file.
func (f *file) footer(h *header) (_ *footer, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	return decodeFooter(f.info.Name, f.data[f.info.Size-footerBytes:], f.info.Size, h)
}

// serve readies a file for reading nodes. g describes it.
func (f *file) serve(spec *index.Spec, g *generation) {
	f.nodes = uint32(g.nodes)
	f.seed = newHasher(identityOf(spec)).seed(partNode, g.checkpoint, g.salt)
	f.checked = newCheckedBits(spec.Arena, f.nodes)
}

// close unmaps. No reader is left.
func (f *file) close() error {
	f.checked.free()
	return f.mapping.Close()
}

// node returns the image in a block, checked. A fault while it is read is the
// caller's to catch.
func (f *file) node(id btree.NodeID, block uint32) (unsafe.Pointer, error) {
	image := f.image(block)
	if !f.checked.has(block) {
		if err := f.check(id, block, image); err != nil {
			return nil, err
		}
		f.checked.add(block)
	}
	return unsafe.Pointer(&image[0]), nil
}

func (f *file) image(block uint32) []byte { return f.data[int(block)*blockBytes:][:blockBytes] }

func (f *file) check(id btree.NodeID, block uint32, image []byte) error {
	if reason := checkNode(f.seed, id, block, image); reason != "" {
		return fault.Corrupt(f.info.Name, int64(block)*blockBytes, blockBytes, "node %d: %s", id, reason)
	}
	return nil
}

// checkNode returns what is wrong with an image.
func checkNode(seed uint64, id btree.NodeID, block uint32, image []byte) string {
	switch {
	case nodeSum(seed, block, image) != storedSum(image):
		return "checksum"
	case !btree.CheckImage(image, id):
		return "not a node that the tree can use"
	}
	return ""
}

// FaultAt makes file a mapfile.Locator.
func (f *file) FaultAt(address uintptr) error {
	offset := address - uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	if offset >= uintptr(len(f.data)) {
		return nil
	}
	return fault.Corrupt(f.info.Name, int64(offset), 0, "mapped file cannot be read")
}

// checkedBits remembers which blocks of a file were checked: a bit each, in
// chunks that are made when they are needed.
type checkedBits struct {
	arena  *arena.Arena
	chunks []atomic.Uint64 // arena.Ref; 0 = none of its blocks was checked
}

const (
	bitChunkBytes = 4096
	bitChunkShift = 15 // log2 of the blocks of a chunk
)

func newCheckedBits(a *arena.Arena, nodes uint32) checkedBits {
	return checkedBits{a, make([]atomic.Uint64, nodes>>bitChunkShift+1)}
}

func (b *checkedBits) has(block uint32) bool {
	ref := b.chunks[block>>bitChunkShift].Load()
	return ref != 0 && b.word(arena.Ref(ref), block).Load()&(1<<(block%64)) != 0
}

// word holds the bit of a block.
func (b *checkedBits) word(chunk arena.Ref, block uint32) *atomic.Uint64 {
	return b.arena.Word(chunk + arena.Ref(block%(1<<bitChunkShift)/64*8))
}

// add sets the bit of a block. Without memory for it the block is checked again
// next time.
func (b *checkedBits) add(block uint32) {
	slot := &b.chunks[block>>bitChunkShift]
	ref := slot.Load()
	if ref == 0 {
		if ref = b.newChunk(slot); ref == 0 {
			return
		}
	}
	b.word(arena.Ref(ref), block).Or(1 << (block % 64))
}

func (b *checkedBits) newChunk(slot *atomic.Uint64) uint64 {
	ref, err := b.arena.AllocLasting(0, bitChunkBytes)
	if err != nil {
		return 0
	}
	zeroWords(b.arena.Pointer(ref), bitChunkBytes/8)
	if !slot.CompareAndSwap(0, uint64(ref)) {
		b.arena.Free(0, ref, bitChunkBytes)
	}
	return slot.Load()
}

func (b *checkedBits) bytes() (n int64) {
	for i := range b.chunks {
		if b.chunks[i].Load() != 0 {
			n += bitChunkBytes
		}
	}
	return n
}

func (b *checkedBits) free() {
	for i := range b.chunks {
		if ref := b.chunks[i].Swap(0); ref != 0 {
			b.arena.Free(0, arena.Ref(ref), bitChunkBytes)
		}
	}
}

// zeroWords clears memory that atomic loads may already see.
func zeroWords(p unsafe.Pointer, n int) {
	for i := range n {
		(*atomic.Uint64)(unsafe.Add(p, 8*i)).Store(0)
	}
}
