package chainindex

import (
	"encoding/binary"
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

// mappedFile is the node store of a layer in a file. All nodes are images for
// ever, so that one word can stand for every entry of a node table. A node is
// checked when it is used for the first time.
type mappedFile struct {
	readOnly
	info    index.FileInfo
	footer  footer
	seed    uint64 // of the nodes' checksums
	mapping vfs.Mapping
	data    []byte
	image   atomic.Uint64 // btree.ImageBit
	checked bitmap        // nodes, by id
	damaged atomic.Bool   // a node did not match or could not be read
}

// openFile maps a file and checks its header and footer. Its cost
// does not depend on the number of entries.
func openFile(spec *index.Spec, info index.FileInfo) (_ *mappedFile, err error) {
	m, err := spec.FS.Map(info.Name, info.Size)
	if err != nil {
		return nil, missing(info.Name, err)
	}
	f := &mappedFile{info: info, mapping: m, data: m.Bytes()}
	f.image.Store(btree.ImageBit)
	if err = f.readEnds(spec); err == nil {
		f.checked, err = newBitmap(spec.Arena, f.footer.nodes+1)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return f, nil
}

// readEnds reads header and footer of a file, whose size may be too small for any.
func (f *mappedFile) readEnds(spec *index.Spec) (err error) {
	size := f.info.Size
	if size < int64(fileSize(1)) {
		return fault.Corrupt(f.info.Name, 0, 0, "chain file of %d bytes", size)
	}
	defer mapfile.Catch(debug.SetPanicOnFault(true), f, &err)
	id := identityOf(spec, f.info.Checkpoint)
	if err := id.checkHeader(f.info.Name, f.data[:headerFields]); err != nil {
		return err
	}
	f.seed = id.seed(partNode)
	f.footer, err = decodeFooter(f.info.Name, f.data[size-footerSize:], id.seed(partFooter), size)
	return err
}

// missing makes an error of a file that is not there.
func missing(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &fault.File{Kind: fault.ErrMissingFile, Path: path, Reason: "index file of the checkpoint"}
	}
	return err
}

func (f *mappedFile) close(a *arena.Arena) error {
	f.checked.free(a)
	return f.mapping.Close()
}

// offset returns where a node is.
func (f *footer) offset(id btree.NodeID) int64 {
	if id == rootID {
		return int64(f.nodes) * nodeSize
	}
	return int64(id-1) * nodeSize
}

// Entry returns the word that says that every node is an image.
func (f *mappedFile) Entry(id btree.NodeID) (*atomic.Uint64, error) {
	if uint64(id)-1 >= f.footer.nodes {
		return nil, fault.Corrupt(f.info.Name, 0, 0, "there is no node %d", id)
	}
	return &f.image, nil
}

// Image returns a node, checked.
func (f *mappedFile) Image(id btree.NodeID, _ uint64) (unsafe.Pointer, error) {
	p := unsafe.Pointer(&f.data[f.footer.offset(id)])
	if !f.checked.has(uint64(id)) {
		if err := f.check(id); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (f *mappedFile) check(id btree.NodeID) error {
	at := f.footer.offset(id)
	if err := f.checkNode(id, f.data[at:][:nodeSize:nodeSize]); err != nil {
		f.damaged.Store(true)
		return err
	}
	f.checked.add(uint64(id))
	return nil
}

// checkNode checks the bytes of a node, aligned to 8.
func (f *mappedFile) checkNode(id btree.NodeID, b []byte) error {
	if binary.LittleEndian.Uint64(b) != nodeSum(f.seed, b) || !btree.CheckImage(b, id) {
		return fault.Corrupt(f.info.Name, f.footer.offset(id), nodeSize, "node %d does not match its checksum", id)
	}
	return nil
}

// FaultAt says what a memory fault in the mapping means.
func (f *mappedFile) FaultAt(address uintptr) error {
	if len(f.data) == 0 {
		return nil
	}
	offset := address - uintptr(unsafe.Pointer(&f.data[0]))
	if offset >= uintptr(len(f.data)) {
		return nil
	}
	f.damaged.Store(true)
	return fault.Corrupt(f.info.Name, int64(offset), 0, "mapped file cannot be read")
}
