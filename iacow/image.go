package iacow

import (
	"cmp"
	"encoding/binary"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
)

// image is an index as one checkpoint left it: the newest file and the older
// ones that it refers to, mapped. It is immutable. What it reads from a file is
// checked each time, except for nodes, and a fault in a mapping is an error.
type image struct {
	footer
	hash  hasher
	files [placeCount]*file // nil for places not in use
}

// pageWords are the entries of a page of the node table.
type pageWords [pageIDs]entry

func (im *image) newest() *file { return im.files[im.own] }

// infos lists the files, newest first.
func (im *image) infos() []index.FileInfo {
	var list []index.FileInfo
	for _, f := range im.files {
		if f != nil {
			list = append(list, f.info)
		}
	}
	slices.SortFunc(list, func(a, b index.FileInfo) int { return cmp.Compare(b.Checkpoint, a.Checkpoint) })
	return list
}

func (im *image) close() error {
	var errs []error
	for _, f := range im.files {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}

// FaultAt makes image a mapfile.Locator.
func (im *image) FaultAt(address uintptr) error {
	for _, f := range im.files {
		if f != nil {
			if err := f.FaultAt(address); err != nil {
				return err
			}
		}
	}
	return nil
}

// ref reads the directory entry of a page.
func (im *image) ref(page uint64) (r pageRef, err error) {
	chunk, err := im.chunk(page / chunkPages)
	if err != nil {
		return r, err
	}
	at := chunkSumBytes + page%chunkPages*pageRefBytes
	r = decodePageRef(chunk[at:])
	if reason := r.check(&im.places); reason != "" {
		offset := im.chunkOffset(page/chunkPages) + at
		return r, fault.Corrupt(im.newest().info.Name, int64(offset), pageRefBytes, "node table directory: %s", reason)
	}
	return r, nil
}

func (im *image) chunkOffset(chunk uint64) uint64 { return im.directory + chunk*chunkBytes }

// chunk returns a copy of a directory chunk.
func (im *image) chunk(chunk uint64) (b [chunkBytes]byte, err error) {
	f := im.newest()
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	offset := im.chunkOffset(chunk)
	copy(b[:], f.data[offset:])
	own := &im.places[im.own]
	if im.hash.chunk(own.checkpoint, own.salt, chunk, b[chunkSumBytes:]) != binary.LittleEndian.Uint64(b[:]) {
		return b, fault.Corrupt(f.info.Name, int64(offset), chunkBytes, "node table directory: checksum")
	}
	return b, nil
}

// readPage reads a page of the node table.
func (im *image) readPage(page uint64, dst *pageWords) error {
	r, err := im.ref(page)
	if err != nil || r.block == 0 {
		*dst = pageWords{}
		return err
	}
	f := im.files[r.place]
	var b [pageBytes]byte
	if err := f.copyBlocks(b[:], r.block); err != nil {
		return err
	}
	if reason := im.decodePage(page, &r, &b, dst); reason != "" {
		return fault.Corrupt(f.info.Name, int64(r.block)*blockBytes, pageBytes, "node table page %d: %s", page, reason)
	}
	return nil
}

// copyBlocks copies bytes from a block on.
func (f *file) copyBlocks(dst []byte, block uint32) (err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	copy(dst, f.data[int(block)*blockBytes:])
	return nil
}

func (im *image) decodePage(page uint64, r *pageRef, b *[pageBytes]byte, dst *pageWords) string {
	if im.hash.page(page, b[:]) != r.sum {
		return "checksum"
	}
	inUse := uint16(0)
	for i := range dst {
		e := entry(binary.LittleEndian.Uint64(b[8*i:]))
		dst[i] = e
		if e == 0 {
			continue
		}
		if reason := e.check(&im.places); reason != "" {
			return reason
		}
		if id := page<<pageShift + uint64(i); id == 0 || id >= im.next {
			return "entry of an impossible id"
		}
		inUse++
	}
	if inUse != r.live {
		return "has another number of nodes than the directory says"
	}
	return ""
}

// appendNode appends the image of a node, checked anew: it gets a new checksum, which
// must not cover damage that has come since it was first used.
func (im *image) appendNode(dst []byte, id btree.NodeID, e entry) (_ []byte, err error) {
	f := im.files[e.place()]
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	image := f.image(e.block())
	if err := f.check(id, e.block(), image); err != nil {
		return dst, err
	}
	return append(dst, image...), nil
}

// storedSum is the checksum that an image carries.
func storedSum(image []byte) uint64 { return binary.LittleEndian.Uint64(image) }
