// Package vfs is the seam between Rekindle and the file system. Every file
// operation of the engine goes through an FS, so that tests can lose, tear and
// reorder what was not synced, fail any single operation, and record the order
// of operations.
//
// Implementations:
//
//	OS()            the operating system
//	Inside(dir)     the operating system, no symbolic links below dir
//	NewMem()        memory, with the crash rules below
//	NoMap(fs)       fs, but Map reads the file into the heap
//	Wrap(fs, hook)  fs with a hook around every operation
//	WithLog(fs, f)  fs that reports every operation to f
//	errorfs.Wrap    fs that injects errors
//
// # Rules for callers
//
//   - Names are slash-separated or native paths. Mem treats a relative name and
//     the same name with a leading slash as one.
//   - Content is durable after File.Sync or File.Datasync. A created, renamed or
//     removed name is durable after SyncDir of its directory; so is a created
//     directory after SyncDir of its parent.
//   - A failed Sync or Datasync is final: what was unsynced may be gone although
//     reads still return it, and a second call that succeeds proves nothing.
//   - A removed or renamed file stays usable through its open handles.
//   - A mapped file is never written or truncated; it may be removed.
//   - Every error carries the path.
//
// # Crash rules of Mem
//
// Mem keeps, besides what readers see, what would survive a power cut. The unit
// of content is a sector of 512 bytes, which is never torn itself.
//
//	operation            survives for certain after       may survive before that
//	WriteAt, Truncate    Sync or Datasync of the file     each sector on its own, in any of
//	                                                      its states since the last sync; any
//	                                                      size since then or between those
//	Create               SyncDir of the directory         yes
//	Remove               SyncDir of the directory         yes
//	Rename               SyncDir of either directory      yes, and also half: both names then
//	                                                      hold the file, but never neither
//	MkdirAll             SyncDir of each parent           each directory on its own
//
// Changes of entries are independent of each other and of the content: a new
// name may survive with none of its bytes, and a synced file is lost when its
// name was not synced. Only renames of directories survive in their order.
// CrashMode says which of the allowed outcomes CrashClone takes: the extremes,
// those in which entries and content part, or any at random.
package vfs
