package iacow

import (
	"encoding/binary"
	"unsafe"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// output writes a node file from its start to its end.
type output struct {
	file   vfs.File
	w      *vfs.PacedWriter
	seed   uint64 // of node checksums
	blocks uint32 // written so far, as long as nothing else was
	closed bool
}

func newOutput(f vfs.File, seed uint64) *output {
	return &output{file: f, w: vfs.NewPacedWriter(f, 0), seed: seed}
}

// write appends bytes.
func (o *output) write(b []byte) error {
	o.blocks += uint32(len(b) / blockBytes)
	_, err := o.w.Write(b)
	return err
}

// node appends an image with its checksum and returns its block.
func (o *output) node(img []byte) (uint32, error) {
	block := o.blocks
	binary.LittleEndian.PutUint64(img, nodeSum(o.seed, block, img))
	return block, o.write(img)
}

// finish makes the file durable and closes it.
func (o *output) finish() error {
	if err := o.w.Finish(); err != nil {
		return err
	}
	return o.close()
}

func (o *output) close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	return o.file.Close()
}

// info describes the finished file.
func (o *output) info(checkpoint uint64) index.FileInfo {
	return index.FileInfo{Name: o.file.Name(), Size: o.w.Size(), Sum: o.w.Sum64(), Checkpoint: checkpoint}
}

// unsafePointer is the start of an image in memory.
func unsafePointer(img []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(img)) }
