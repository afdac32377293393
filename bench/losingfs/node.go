package losingfs

import (
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// disk is what all nodes of one mount share.
type disk struct {
	Options
	mem *vfs.Mem
}

// node is a file or a directory. A file is reached through its handle, because it
// may be open when it has no name any more; a directory by its path.
type node struct {
	fs.Inode
	disk *disk
	file vfs.File // nil: a directory
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
)

func (n *node) path() string { return n.Path(nil) }

func (n *node) below(name string) string { return path.Join(n.path(), name) }

// errno is the system's number for an error of vfs.Mem.
func errno(err error) syscall.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return fs.OK
	case errors.As(err, &number):
		return number
	case errors.Is(err, iofs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, iofs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, iofs.ErrInvalid):
		return syscall.EINVAL
	}
	return syscall.EIO
}

// Lookup finds a child. One that is known keeps its inode, and with that the
// kernel's pages of it.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child := n.GetChild(name)
	if child == nil {
		info, err := n.disk.mem.Stat(n.below(name))
		if err != nil {
			return nil, errno(err)
		}
		made := &node{disk: n.disk}
		if !info.Dir {
			if made.file, err = n.disk.mem.Open(n.below(name)); err != nil {
				return nil, errno(err)
			}
		}
		child = n.NewInode(ctx, made, made.attributes())
	}
	return child, child.Operations().(*node).fill(&out.Attr)
}

func (n *node) attributes() fs.StableAttr {
	if n.file == nil {
		return fs.StableAttr{Mode: syscall.S_IFDIR}
	}
	return fs.StableAttr{Mode: syscall.S_IFREG}
}

func (n *node) fill(out *fuse.Attr) syscall.Errno {
	if n.file == nil {
		out.Mode = syscall.S_IFDIR | 0o700
		return fs.OK
	}
	size, err := n.file.Size()
	out.Mode, out.Size, out.Blocks = syscall.S_IFREG|0o600, uint64(size), uint64(size+511)/512
	return errno(err)
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.fill(&out.Attr)
}

// Setattr sets the size; there is nothing else to set.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if n.file == nil {
			return syscall.EISDIR
		}
		if err := n.file.Truncate(int64(size)); err != nil {
			return errno(err)
		}
	}
	return n.fill(&out.Attr)
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	names, err := n.disk.mem.List(n.path())
	if err != nil {
		return nil, errno(err)
	}
	var entries []fuse.DirEntry
	for _, name := range names {
		info, err := n.disk.mem.Stat(n.below(name))
		if err != nil {
			continue // it has just gone
		}
		mode := uint32(syscall.S_IFREG)
		if info.Dir {
			mode = syscall.S_IFDIR
		}
		entries = append(entries, fuse.DirEntry{Name: name, Mode: mode})
	}
	return fs.NewListDirStream(entries), fs.OK
}

// Open keeps the kernel's pages: nobody else changes the file.
func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_KEEP_CACHE, fs.OK
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, _, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	file, err := n.disk.mem.Create(n.below(name))
	if err != nil {
		return nil, nil, 0, errno(err)
	}
	made := &node{disk: n.disk, file: file}
	return n.NewInode(ctx, made, made.attributes()), nil, fuse.FOPEN_KEEP_CACHE, made.fill(&out.Attr)
}

// Read implements fs.NodeReader.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	read, err := n.file.ReadAt(dest, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return fuse.ReadResultData(dest[:read]), errno(err)
}

// Write implements fs.NodeWriter.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	written, err := n.file.WriteAt(data, off)
	return uint32(written), errno(err)
}

// Fsync implements fs.NodeFsyncer, for directories too.
func (n *node) Fsync(_ context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	switch {
	case n.disk.IgnoreSync != nil && n.disk.IgnoreSync(n.path()):
		return fs.OK
	case n.file == nil:
		return errno(n.disk.mem.SyncDir(n.path()))
	}
	return errno(n.file.Sync())
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if _, err := n.disk.mem.Stat(n.below(name)); err == nil {
		return nil, syscall.EEXIST
	}
	if err := n.disk.mem.MkdirAll(n.below(name)); err != nil {
		return nil, errno(err)
	}
	made := &node{disk: n.disk}
	return n.NewInode(ctx, made, made.attributes()), made.fill(&out.Attr)
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.mem.Remove(n.below(name)))
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return errno(n.disk.mem.Remove(n.below(name)))
}

// Rename implements fs.NodeRenamer.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}
	to := path.Join(parent.EmbeddedInode().Path(nil), newName)
	return errno(n.disk.mem.Rename(n.below(name), to))
}
