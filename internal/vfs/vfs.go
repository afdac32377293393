package vfs

import "io"

// FS is a file system. All methods may be called concurrently.
type FS interface {
	// Create makes a new file and opens it for reading and writing. It fails
	// with fs.ErrExist if the name is taken and with fs.ErrNotExist if the
	// directory is missing.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// OpenRead opens an existing file for reading only.
	OpenRead(name string) (File, error)
	// Map gives read access to the whole of an existing file of that size. One of
	// another size gives fault.ErrCorrupt before anything is read or allocated for it.
	// The bytes start at an 8-byte aligned address.
	Map(name string, size int64) (Mapping, error)
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Rename gives a file another name, replacing a file that has it.
	Rename(from, to string) error
	// MkdirAll makes a directory and its missing parents.
	MkdirAll(name string) error
	// List returns the sorted base names of a directory's entries.
	List(dir string) ([]string, error)
	// Stat describes a file or a directory; fs.ErrNotExist if there is none.
	Stat(name string) (Info, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
	// Lock takes the exclusive lock of the named file, which is made if missing
	// and whose bytes are never changed. It does not wait: a lock that is held,
	// by this process or another, gives fault.ErrLocked. Close releases the
	// lock, and so does the end of the process, however it ends. The file stays.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt and WriteAt behave as those of os.File: ReadAt
// returns io.EOF when it delivers less than asked for, WriteAt beyond the end
// extends the file with zeros. All methods except Close may be called
// concurrently; after Close they fail with fs.ErrClosed.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name that the file was opened with.
	Name() string
	// Size is the current size in bytes.
	Size() (int64, error)
	// Truncate sets the size in bytes; a larger size appends zeros.
	Truncate(size int64) error
	// Sync makes content and metadata durable.
	Sync() error
	// Datasync makes the content durable and as much metadata, such as the
	// size, as it takes to read it back.
	Datasync() error
	// DropCache asks that later reads come from the medium, where the system
	// can do that. Only synced content is dropped; call Sync before.
	DropCache() error
	// FillCache asks that n bytes at offset be brought from the medium for later
	// reads, where the system can do that.
	FillCache(offset, n int64) error
}

// Mapping is the content of a file in memory.
type Mapping interface {
	// Bytes is valid until Close. It must not be written to: on an OS mapping
	// that is a fault.
	Bytes() []byte
	// Close releases the memory. The caller makes sure that nobody uses Bytes
	// any more. Closing again does nothing.
	Close() error
}

// Info describes a file or a directory. The size of a directory is 0.
type Info struct {
	Size int64
	Dir  bool
}
