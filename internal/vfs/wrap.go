package vfs

import "io"

// Hook runs around an operation. It performs the operation by calling do, at
// most once, and its result is the operation's error. It may pass do an Op with
// a smaller Size: a read or write then stops after that many bytes. Without do
// it may let a sync pretend success, as a bad disk does; an operation with a
// result must fail then. A hook may run in several goroutines at once.
type Hook func(op Op, do func(Op) error) error

// Wrap returns fs with hook around every operation of it, of its files and of
// its locks.
func Wrap(fs FS, hook Hook) FS { return &wrapFS{fs, hook} }

type wrapFS struct {
	fs   FS
	hook Hook
}

// around runs call under the hook and returns its result if the hook lets it
// succeed. A result whose operation the hook turns into a failure is passed to
// drop.
func around[T any](hook Hook, op Op, call func() (T, error), drop func(T) error) (T, error) {
	var result, none T
	performed := false
	err := hook(op, func(Op) (err error) {
		result, err = call()
		performed = err == nil
		return err
	})
	if err == nil {
		return result, nil
	}
	if performed {
		return none, joinErrors(err, drop(result))
	}
	return none, err
}

func (w *wrapFS) file(op Op, open func(string) (File, error)) (File, error) {
	f, err := around(w.hook, op, func() (File, error) { return open(op.Path) }, File.Close)
	if err != nil {
		return nil, err
	}
	return &wrapFile{f, w.hook, op.Kind == OpOpenRead}, nil
}

func (w *wrapFS) simple(op Op, call func() error) error {
	return w.hook(op, func(Op) error { return call() })
}

func (w *wrapFS) Create(name string) (File, error) {
	return w.file(Op{Kind: OpCreate, Path: name}, w.fs.Create)
}

func (w *wrapFS) Open(name string) (File, error) {
	return w.file(Op{Kind: OpOpen, Path: name}, w.fs.Open)
}

func (w *wrapFS) OpenRead(name string) (File, error) {
	return w.file(Op{Kind: OpOpenRead, Path: name}, w.fs.OpenRead)
}

func (w *wrapFS) Map(name string, size int64) (Mapping, error) {
	call := func() (Mapping, error) { return w.fs.Map(name, size) }
	return around(w.hook, Op{Kind: OpMap, Path: name}, call, Mapping.Close)
}

func (w *wrapFS) Remove(name string) error {
	return w.simple(Op{Kind: OpRemove, Path: name}, func() error { return w.fs.Remove(name) })
}

func (w *wrapFS) Rename(from, to string) error {
	return w.simple(Op{Kind: OpRename, Path: from, To: to}, func() error { return w.fs.Rename(from, to) })
}

func (w *wrapFS) MkdirAll(name string) error {
	return w.simple(Op{Kind: OpMkdirAll, Path: name}, func() error { return w.fs.MkdirAll(name) })
}

func (w *wrapFS) SyncDir(dir string) error {
	return w.simple(Op{Kind: OpSyncDir, Path: dir}, func() error { return w.fs.SyncDir(dir) })
}

func (w *wrapFS) List(dir string) ([]string, error) {
	call := func() ([]string, error) { return w.fs.List(dir) }
	return around(w.hook, Op{Kind: OpList, Path: dir}, call, nothing)
}

func (w *wrapFS) Stat(name string) (Info, error) {
	call := func() (Info, error) { return w.fs.Stat(name) }
	return around(w.hook, Op{Kind: OpStat, Path: name}, call, nothing)
}

func (w *wrapFS) Lock(name string) (io.Closer, error) {
	call := func() (io.Closer, error) { return w.fs.Lock(name) }
	lock, err := around(w.hook, Op{Kind: OpLock, Path: name}, call, io.Closer.Close)
	if err != nil {
		return nil, err
	}
	return wrapLock{lock, name, w.hook}, nil
}

func nothing[T any](T) error { return nil }

type wrapLock struct {
	lock io.Closer
	name string
	hook Hook
}

func (l wrapLock) Close() error {
	return l.hook(Op{Kind: OpClose, Path: l.name}, func(Op) error { return l.lock.Close() })
}

type wrapFile struct {
	file     File
	hook     Hook
	readOnly bool
}

func (f *wrapFile) simple(kind Kind, size int64, call func() error) error {
	op := Op{Kind: kind, Path: f.file.Name(), Size: size, ReadOnly: f.readOnly}
	return f.hook(op, func(Op) error { return call() })
}

func (f *wrapFile) Name() string     { return f.file.Name() }
func (f *wrapFile) Close() error     { return f.simple(OpClose, 0, f.file.Close) }
func (f *wrapFile) Sync() error      { return f.simple(OpSync, 0, f.file.Sync) }
func (f *wrapFile) Datasync() error  { return f.simple(OpDatasync, 0, f.file.Datasync) }
func (f *wrapFile) DropCache() error { return f.simple(OpDropCache, 0, f.file.DropCache) }
func (f *wrapFile) FillCache(offset, n int64) error {
	return f.simple(OpFillCache, n, func() error { return f.file.FillCache(offset, n) })
}

func (f *wrapFile) Truncate(size int64) error {
	return f.simple(OpTruncate, size, func() error { return f.file.Truncate(size) })
}

func (f *wrapFile) Size() (int64, error) {
	return around(f.hook, Op{Kind: OpSize, Path: f.file.Name(), ReadOnly: f.readOnly}, f.file.Size, nothing)
}

func (f *wrapFile) ReadAt(p []byte, off int64) (int, error) {
	return f.transfer(OpReadAt, f.file.ReadAt, p, off)
}

func (f *wrapFile) WriteAt(p []byte, off int64) (int, error) {
	return f.transfer(OpWriteAt, f.file.WriteAt, p, off)
}

// transfer reads or writes p, or as much of it as the hook asks for.
func (f *wrapFile) transfer(kind Kind, call func([]byte, int64) (int, error), p []byte, off int64) (n int, err error) {
	op := Op{Kind: kind, Path: f.file.Name(), Offset: off, Size: int64(len(p)), ReadOnly: f.readOnly}
	err = f.hook(op, func(op Op) (err error) {
		n, err = call(p[:op.Size], off)
		return err
	})
	if err == nil && n < len(p) {
		err = op.Fail(io.ErrUnexpectedEOF)
	}
	return n, err
}
