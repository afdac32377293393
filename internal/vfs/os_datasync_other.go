//go:build !linux

package vfs

import "os"

// fdCalls falls back to a full sync: only linux is known to keep the promise of
// fdatasync down to the medium (os.File.Sync is F_FULLFSYNC on darwin).
type fdCalls struct{}

func (fdCalls) init(*os.File) error       { return nil }
func (fdCalls) datasync(f *os.File) error { return f.Sync() }

// What advise can be told, in vain.
const (
	dropCache = iota
	fillCache
)

func (fdCalls) advise(*os.File, int64, int64, int) error { return nil }
