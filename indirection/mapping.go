package indirection

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// mappedFile is an array file in memory. It stays mapped while it has owners:
// the Image that opened it, and every Array with pages in it.
type mappedFile struct {
	info    Generation
	mapping vfs.Mapping
	data    []byte
	owners  atomic.Int32
}

// mapGeneration maps a file and checks that it is the one that g names.
func mapGeneration(fsys vfs.FS, g Generation, id [16]byte) (*mappedFile, header, error) {
	m, err := fsys.Map(g.Path, g.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, header{}, &fault.File{Kind: fault.ErrMissingFile, Path: g.Path, Reason: "array file of the checkpoint"}
	}
	if err != nil {
		return nil, header{}, err
	}
	f := &mappedFile{info: g, mapping: m, data: m.Bytes()}
	f.owners.Store(1)
	h, err := f.header(id)
	if err != nil {
		return nil, header{}, joinClose(err, m)
	}
	return f, h, nil
}

// header reads the header of a file, whose size may be too small for any.
func (f *mappedFile) header(id [16]byte) (h header, err error) {
	if f.info.Size < headerBytes+footerBytes {
		return h, fault.Corrupt(f.info.Path, 0, 0, "array file of %d bytes", f.info.Size)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	if h, err = decodeHeader(f.info.Path, f.data[:headerFields]); err != nil {
		return h, err
	}
	return h, h.check(f.info, id)
}

// footer reads the footer of the newest file.
func (f *mappedFile) footer(h hasher) (_ footer, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	return decodeFooter(f.info.Path, f.data[f.info.Size-footerBytes:], f.info.Size, h, f.info.Number)
}

func (f *mappedFile) retain() { f.owners.Add(1) }

// release ends one ownership; the last one unmaps.
func (f *mappedFile) release() error {
	if f.owners.Add(-1) != 0 {
		return nil
	}
	return f.mapping.Close()
}

func (f *mappedFile) view(offset uint64, n int) ([]byte, error) {
	return f.data[offset:][:n:n], nil
}

// word reads one slot of a page that was checked.
func (f *mappedFile) word(offset uint64) Word {
	return Word(binary.LittleEndian.Uint64(f.data[offset:]))
}

func (f *mappedFile) contains(address uintptr) (offset uintptr, ok bool) {
	if len(f.data) == 0 {
		return 0, false
	}
	offset = address - uintptr(unsafe.Pointer(&f.data[0]))
	return offset, offset < uintptr(len(f.data))
}

// FaultAt implements mapfile.Locator: a fault in one of the mappings means that
// the medium failed to deliver a page, or that the file was cut.
func (im *Image) FaultAt(address uintptr) error {
	for _, m := range im.files {
		if m == nil {
			continue
		}
		if err := m.FaultAt(address); err != nil {
			return err
		}
	}
	return nil
}

// FaultAt implements mapfile.Locator.
func (f *mappedFile) FaultAt(address uintptr) error {
	if offset, ok := f.contains(address); ok {
		return fault.Corrupt(f.info.Path, int64(offset), 0, "mapped file cannot be read")
	}
	return nil
}
