package losingfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// FS is a mounted file system. Its methods must not overlap.
type FS struct {
	dir     string
	options Options
	mem     *vfs.Mem
	server  *fuse.Server
}

// Options say how the file system behaves.
type Options struct {
	// IgnoreSync says for which files and directories syncs succeed and do nothing.
	// It is there to show that tests notice. nil = for none.
	IgnoreSync func(path string) bool
}

// Mount mounts an empty file system on a directory that exists.
func Mount(dir string, o Options) (*FS, error) {
	f := &FS{dir: dir, options: o, mem: vfs.NewMem()}
	return f, f.mount()
}

func (f *FS) mount() error {
	keep := time.Hour // nobody but the kernel changes anything
	server, err := fs.Mount(f.dir, &node{disk: &disk{mem: f.mem, Options: f.options}}, &fs.Options{
		MountOptions: fuse.MountOptions{Name: "losingfs", FsName: "losingfs", DirectMount: true, MaxWrite: 1 << 20},
		EntryTimeout: &keep,
		AttrTimeout:  &keep,
	})
	if err != nil {
		return fmt.Errorf("mount on %s: %w", f.dir, err)
	}
	f.server = server
	return nil
}

// PowerCut takes from the file system what was not synced, and the kernel's caches
// with it. No process may have a file of it open.
func (f *FS) PowerCut(rng *rand.Rand, mode vfs.CrashMode) error {
	if err := f.Unmount(); err != nil {
		return err
	}
	f.mem = f.mem.CrashClone(rng, mode)
	return f.mount()
}

const (
	unmountTries = 100
	unmountPause = 20 * time.Millisecond
)

// Unmount ends the file system. The kernel may need a moment to let go of files
// of a process that was killed.
func (f *FS) Unmount() (err error) {
	for range unmountTries {
		if err = f.server.Unmount(); !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(unmountPause)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", f.dir, err)
	}
	return nil
}
