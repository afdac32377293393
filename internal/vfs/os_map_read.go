//go:build nommap || !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package vfs

// MapsFiles says whether the file system of the operating system maps files, or
// reads them instead.
const MapsFiles = false

// mapFile reads the file: with the tag nommap, and on systems where a mapping
// would get in the way. Windows does not let a mapped file be removed.
func mapFile(name string, flag int, size int64) (Mapping, error) {
	f, err := openOS(name, flag)
	if err != nil {
		return nil, err
	}
	return readMapping(f, size)
}
