// Package losingfs is a real file system, mounted through FUSE, that loses at a
// simulated power cut what was not synced.
//
// Content and entries are in a vfs.Mem, and a power cut takes what vfs.Mem's
// CrashClone leaves of them: sectors of 512 bytes, each in any of the states that
// it went through since the last sync of its file; sizes; and created, renamed and
// removed entries, each for itself, of directories that were not synced. So what
// may be lost is said in one place, the documentation of internal/vfs, and tests
// that run on vfs.Mem in memory and those that run on this agree about it.
//
// What this adds is everything between the engine and that model: the system
// calls of another process, with its page cache, its memory-mapped files and its
// end by SIGKILL.
//
// It is a module of its own because nothing else needs go-fuse. It works where
// /dev/fuse may be opened and mounting is permitted, or fusermount is installed.
package losingfs
