package vfs

import (
	"io"
	"syscall"
	"unsafe"
)

type noMapFS struct{ FS }

// NoMap returns fs with a Map that reads the file into aligned heap memory.
// It serves platforms and file systems where mapping is not wanted, and race
// builds, because the race detector sees nothing in mapped memory.
func NoMap(fs FS) FS { return noMapFS{fs} }

func (n noMapFS) Map(name string, size int64) (Mapping, error) {
	f, err := n.FS.OpenRead(name)
	if err != nil {
		return nil, err
	}
	return readMapping(f, size)
}

// heapMapping is the content of a file in heap memory.
type heapMapping struct{ data []byte }

func (m *heapMapping) Bytes() []byte { return m.data }

func (m *heapMapping) Close() error {
	m.data = nil
	return nil
}

// readMapping reads a file of that size and closes it.
func readMapping(f File, size int64) (_ Mapping, err error) {
	defer closeInto(f, &err)
	has, err := f.Size()
	if err != nil {
		return nil, err
	}
	if err := checkSize(f.Name(), has, size); err != nil {
		return nil, err
	}
	data, err := readAll(f, size)
	if err != nil {
		return nil, err
	}
	return &heapMapping{data: data}, nil
}

// readAll reads exactly size bytes from the start of f into aligned memory. A
// file that is shorter by now gives io.ErrUnexpectedEOF.
func readAll(f File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, pathError("read", f.Name(), syscall.EFBIG)
	}
	data := alignedBytes(int(size))
	n, err := f.ReadAt(data, 0)
	if n == len(data) {
		return data, nil
	}
	if err == io.EOF {
		err = pathError("read", f.Name(), io.ErrUnexpectedEOF)
	}
	return nil, err
}

// alignedBytes allocates n zero bytes at an 8-byte aligned address, which
// make([]byte, n) does not promise.
func alignedBytes(n int) []byte {
	if n == 0 {
		return nil
	}
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}
