package indirection

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/internal/fault"
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

// mapGeneration maps a file that is known to have the size of g.
func mapGeneration(fs vfs.FS, g Generation) (*mappedFile, error) {
	m, err := fs.Map(g.Path)
	if err != nil {
		return nil, err
	}
	f := &mappedFile{info: g, mapping: m, data: m.Bytes()}
	f.owners.Store(1)
	if int64(len(f.data)) != g.Size {
		return nil, joinClose(fault.Corrupt(g.Path, 0, 0, "size changed to %d bytes while it was opened", len(f.data)), m)
	}
	return f, nil
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
		if offset, ok := m.contains(address); ok {
			return fault.Corrupt(m.info.Path, int64(offset), 0, "mapped file cannot be read")
		}
	}
	return nil
}
