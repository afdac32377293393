package rekindle

import "github.com/rekindledb/rekindle/internal/vfs"

// OnFS returns options that put the database on another file system.
func (o Options) OnFS(fs vfs.FS) *Options {
	o.fs = fs
	return &o
}
