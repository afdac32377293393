package vfs

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// Mem is a file system in memory that can show what a crash would leave of it.
// The rules are in the package documentation. All methods may be called
// concurrently.
type Mem struct {
	ops     atomic.Int64
	handles atomic.Int64
	hook    atomic.Pointer[func(n int, op Op) error]

	mu      sync.RWMutex // guards all below, with all nodes; never held during the hook
	owner   *memOwner
	root    *memNode
	journal memJournal
	locks   map[*memNode]bool
}

// NewMem returns an empty file system. Its root directory is named "/" or ".".
func NewMem() *Mem {
	return &Mem{owner: new(memOwner), root: newMemDir(), locks: map[*memNode]bool{}}
}

// OnOp sets the function that is called before the n-th mutating operation (see
// Kind.Mutates) takes effect; the first one since NewMem or CrashClone is 1.
// If it returns an error, the operation fails with that and does nothing. It
// may use the Mem, in particular clone it, but its own mutating operations come
// to it as well. Concurrent operations call it concurrently. nil ends it.
func (m *Mem) OnOp(hook func(n int, op Op) error) {
	if hook == nil {
		m.hook.Store(nil)
		return
	}
	m.hook.Store(&hook)
}

// Ops returns the number of mutating operations that were begun, including
// those that failed.
func (m *Mem) Ops() int { return int(m.ops.Load()) }

// Handles returns the number of files, mappings and locks that are not closed.
func (m *Mem) Handles() int { return int(m.handles.Load()) }

// mutate runs a mutating operation under the lock, after the hook has let it.
func (m *Mem) mutate(op Op, apply func() error) error {
	n := m.ops.Add(1)
	if hook := m.hook.Load(); hook != nil {
		if err := (*hook)(int(n), op); err != nil {
			return op.Fail(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return op.Fail(apply())
}

// read runs an operation that changes nothing.
func (m *Mem) read(op Op, apply func() error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return op.Fail(apply())
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	node := newMemFile()
	err := m.mutate(Op{Kind: OpCreate, Path: name}, func() error { return m.add(name, node) })
	if err != nil {
		return nil, err
	}
	return m.open(node, name, false), nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	return m.openExisting(Op{Kind: OpOpen, Path: name})
}

// OpenRead implements FS.
func (m *Mem) OpenRead(name string) (File, error) {
	return m.openExisting(Op{Kind: OpOpenRead, Path: name})
}

func (m *Mem) openExisting(op Op) (File, error) {
	var node *memNode
	err := m.read(op, func() (err error) {
		node, err = m.file(op.Path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return m.open(node, op.Path, op.Kind == OpOpenRead), nil
}

func (m *Mem) open(node *memNode, name string, readOnly bool) File {
	m.handles.Add(1)
	return &memFile{memHandle: memHandle{mem: m}, node: node, name: name, readOnly: readOnly}
}

// Map implements FS. The mapping is a private copy of the content.
func (m *Mem) Map(name string, size int64) (Mapping, error) {
	var data []byte
	err := m.read(Op{Kind: OpMap, Path: name}, func() error {
		node, err := m.file(name)
		if err == nil {
			err = checkSize(name, node.current.size, size)
		}
		if err != nil {
			return err
		}
		data = alignedBytes(int(size))
		node.current.readAt(data, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.handles.Add(1)
	return &memMapping{heapMapping{data}, memHandle{mem: m}}, nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	return m.mutate(Op{Kind: OpRemove, Path: name}, func() error {
		dir, base, err := m.parent(name)
		if err != nil {
			return err
		}
		node := dir.entries.current[base]
		switch {
		case node == nil:
			return fs.ErrNotExist
		case node.isDir() && len(node.entries.current) > 0:
			return syscall.ENOTEMPTY
		}
		m.journal.set(dir, base, nil, nil).removed = node
		return nil
	})
}

// Rename implements FS. Like os.Rename it does not replace a directory.
func (m *Mem) Rename(from, to string) error {
	return m.mutate(Op{Kind: OpRename, Path: from, To: to}, func() error {
		oldDir, oldBase, err := m.parent(from)
		if err != nil {
			return err
		}
		newDir, newBase, err := m.parent(to)
		if err != nil {
			return err
		}
		node, replaced := oldDir.entries.current[oldBase], newDir.entries.current[newBase]
		if node == replaced && node != nil {
			return nil
		}
		if err := checkRename(node, replaced, newDir); err != nil {
			return err
		}
		m.journal.rename(node, oldDir, oldBase, newDir, newBase)
		return nil
	})
}

func checkRename(node, replaced, newDir *memNode) error {
	switch {
	case node == nil:
		return fs.ErrNotExist
	case replaced != nil && replaced.isDir():
		return fs.ErrExist
	case !node.isDir():
		return nil
	case replaced != nil:
		return syscall.ENOTDIR
	case node.holds(newDir):
		return fs.ErrInvalid
	}
	return nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(name string) error {
	return m.mutate(Op{Kind: OpMkdirAll, Path: name}, func() error {
		dir := m.root
		for _, base := range memPath(name) {
			next := dir.entries.current[base]
			if next == nil {
				next = newMemDir()
				m.journal.set(dir, base, next, nil)
			}
			if !next.isDir() {
				return syscall.ENOTDIR
			}
			dir = next
		}
		return nil
	})
}

// List implements FS.
func (m *Mem) List(dir string) (names []string, err error) {
	err = m.read(Op{Kind: OpList, Path: dir}, func() error {
		node, err := m.dir(dir)
		if err == nil {
			names = slices.Sorted(maps.Keys(node.entries.current))
		}
		return err
	})
	return names, err
}

// Stat implements FS.
func (m *Mem) Stat(name string) (info Info, err error) {
	err = m.read(Op{Kind: OpStat, Path: name}, func() error {
		node, err := m.find(memPath(name))
		if err == nil {
			info = Info{Size: node.current.size, Dir: node.isDir()}
		}
		return err
	})
	return info, err
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	return m.mutate(Op{Kind: OpSyncDir, Path: dir}, func() error {
		node, err := m.dir(dir)
		if err == nil {
			m.journal.syncDir(node)
		}
		return err
	})
}

// Lock implements FS. Locks are those of this Mem only. Making the lock file is
// not counted as a mutating operation.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.lockFile(name)
	if err != nil {
		return nil, Op{Kind: OpLock, Path: name}.Fail(err)
	}
	if m.locks[node] {
		return nil, errLocked(name)
	}
	m.locks[node] = true
	m.handles.Add(1)
	return &memLock{memHandle{mem: m}, node, name}, nil
}

func (m *Mem) lockFile(name string) (*memNode, error) {
	node := newMemFile()
	if err := m.add(name, node); err == nil {
		return node, nil
	}
	return m.file(name)
}

// Dump returns a copy of the content that readers see, by path without a
// leading slash. Directories have a trailing slash and no content.
func (m *Mem) Dump() map[string][]byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := map[string][]byte{}
	m.root.dump("", out)
	return out
}

func (n *memNode) dump(prefix string, out map[string][]byte) {
	for name, child := range n.entries.current {
		if child.isDir() {
			out[prefix+name+"/"] = nil
			child.dump(prefix+name+"/", out)
		} else {
			content := make([]byte, child.current.size)
			child.current.readAt(content, 0)
			out[prefix+name] = content
		}
	}
}
