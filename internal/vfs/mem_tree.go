package vfs

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// add puts a new node into its directory.
func (m *Mem) add(name string, node *memNode) error {
	dir, base, err := m.parent(name)
	if err != nil {
		return err
	}
	if dir.entries.current[base] != nil {
		return fs.ErrExist
	}
	m.journal.set(dir, base, node, nil)
	return nil
}

// memPath splits a name into its components; none for the root.
func memPath(name string) []string {
	clean := strings.Trim(path.Clean("/"+filepath.ToSlash(name)), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

func (m *Mem) find(names []string) (*memNode, error) {
	node := m.root
	for i, name := range names {
		if !node.isDir() {
			return nil, notDirectory(path.Join(names[:i]...))
		}
		if node = node.entries.current[name]; node == nil {
			return nil, fs.ErrNotExist
		}
	}
	return node, nil
}

func (m *Mem) file(name string) (*memNode, error) {
	node, err := m.find(memPath(name))
	if err == nil && node.isDir() {
		return nil, notRegular(name)
	}
	return node, err
}

func (m *Mem) dir(name string) (*memNode, error) { return m.findDir(memPath(name)) }

func (m *Mem) findDir(names []string) (*memNode, error) {
	node, err := m.find(names)
	if err == nil && !node.isDir() {
		return nil, notDirectory(path.Join(names...))
	}
	return node, err
}

// parent returns the directory and the base name of a name that is not the root.
func (m *Mem) parent(name string) (*memNode, string, error) {
	names := memPath(name)
	if len(names) == 0 {
		return nil, "", fs.ErrInvalid
	}
	dir, err := m.findDir(names[:len(names)-1])
	return dir, names[len(names)-1], err
}
