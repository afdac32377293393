package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
)

// BackupResult says what a backup holds.
type BackupResult struct {
	CTS   uint64 // the commit that it ends with
	Files int
	Bytes int64
}

// Backup writes a checkpoint and makes a database of it in a directory of files
// that does not exist or is empty. It holds what was durable when Backup was
// called, and nothing that is not in the checkpoint.
//
// The checkpoint is pinned meanwhile: neither its files nor the segments that it
// needs are let go, while further checkpoints and compactions go on. Files of
// checkpoints never change, and the log is copied up to where the checkpoint's
// round ends, which does not change either. CURRENT comes last: until then the
// directory holds no database, and after an error nothing.
func (c *Checkpointer) Backup(ctx context.Context, files vfs.FS, dir string) (r BackupResult, err error) {
	if _, err := c.Run(ctx); err != nil {
		return r, err
	}
	pinned, release := c.pinNewest()
	defer release()
	b := backup{Checkpointer: c, to: files, dir: dir}
	defer func() { err = errors.Join(err, b.end(err)) }()
	if err := b.begin(); err != nil {
		return r, err
	}
	var kept []Checkpoint
	if pinned != nil {
		if err := b.copyFiles(ctx, pinned); err != nil {
			return r, err
		}
		r.CTS = pinned.CTS
		kept = []Checkpoint{*pinned, again(*pinned)}
	}
	w := manifestWriter{files: files, dir: dir, header: c.header}
	if err := errors.Join(w.begin(kept), w.close()); err != nil {
		return r, err
	}
	r.Files, r.Bytes = b.files, b.bytes
	return r, nil
}

// again gives a checkpoint the next number. A backup has its checkpoint twice,
// because every database has two to choose from.
func again(c Checkpoint) Checkpoint {
	c.Number++
	if c.Suspects != nil {
		s := *c.Suspects
		s.Name = suspectsFileName(c.Number)
		c.Suspects = &s
	}
	return c
}

// pinNewest keeps what the newest checkpoint needs from being let go; nil if there
// is none.
func (c *Checkpointer) pinNewest() (*Checkpoint, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.newest()
	if newest == nil {
		return nil, func() {}
	}
	pin := *newest
	c.pinned = append(c.pinned, &pin)
	return &pin, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pinned = slices.DeleteFunc(c.pinned, func(p *Checkpoint) bool { return p == &pin })
	}
}

// backup is a directory that is becoming a database.
type backup struct {
	*Checkpointer
	to    vfs.FS
	dir   string
	lock  io.Closer
	made  []string // directories
	files int
	bytes int64
}

// begin takes the directory, which must hold nothing.
func (b *backup) begin() error {
	if err := vfs.MkdirDurable(b.to, b.dir); err != nil {
		return err
	}
	names, err := b.to.List(b.dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == lockName }) // of an attempt that failed
	if len(names) > 0 {
		return fmt.Errorf("%w: the directory %s of the backup is not empty", fault.ErrInvalidOptions, b.dir)
	}
	if b.lock, err = b.to.Lock(filepath.Join(b.dir, lockName)); err != nil {
		return err
	}
	for _, dir := range []string{LogDir, checkpointDir} {
		if err := b.mkdir(filepath.Join(b.dir, dir)); err != nil {
			return err
		}
	}
	return b.to.SyncDir(b.dir)
}

func (b *backup) mkdir(dir string) error {
	if slices.Contains(b.made, dir) {
		return nil
	}
	b.made = append(b.made, dir)
	return b.to.MkdirAll(dir)
}

// end takes away what a failed backup has left, CURRENT before what it needs, and
// gives up the lock.
func (b *backup) end(failed error) error {
	if b.lock == nil {
		return nil
	}
	var err error
	if failed != nil {
		if err = b.to.Remove(filepath.Join(b.dir, currentName)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		err = errors.Join(err, b.empty(b.dir))
	}
	return errors.Join(err, b.lock.Close())
}

// empty removes everything below a directory but the lock.
func (b *backup) empty(dir string) error {
	names, err := b.to.List(dir)
	errs := []error{err}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if path == filepath.Join(b.dir, lockName) {
			continue
		}
		if slices.Contains(b.made, path) {
			errs = append(errs, b.empty(path))
		}
		errs = append(errs, b.to.Remove(path))
	}
	return errors.Join(errs...)
}

func (b *backup) copyFiles(ctx context.Context, c *Checkpoint) error {
	n := needs(c)
	delete(n.Files, recordFileName(c.Number)) // they are written anew
	for name := range n.Files {
		if err := b.copy(ctx, name, name, wholeFile); err != nil {
			return err
		}
	}
	if c.Suspects != nil {
		if err := b.copy(ctx, c.Suspects.Name, again(*c).Suspects.Name, wholeFile); err != nil {
			return err
		}
	}
	for _, s := range b.Log.Segments() {
		if s.First >= c.Ends[s.Stream] || !n.Needs(s) {
			continue
		}
		name := path.Join(LogDir, logstream.SegmentName(s.Stream, s.First))
		if err := b.copy(ctx, name, name, int64(c.Ends[s.Stream]-s.First)); err != nil {
			return err
		}
	}
	for _, kept := range []Checkpoint{*c, again(*c)} {
		if err := b.record(&kept); err != nil {
			return err
		}
	}
	for _, dir := range b.made {
		if err := b.to.SyncDir(dir); err != nil {
			return err
		}
	}
	return b.verify(ctx, c)
}

// record writes the copy of a checkpoint's manifest record.
func (b *backup) record(c *Checkpoint) error {
	if err := b.mkdir(filepath.Join(b.dir, filepath.FromSlash(folderName(c.Number)))); err != nil {
		return err
	}
	b.files++
	n, err := writeRecord(b.to, b.dir, b.header, c)
	b.bytes += n
	return err
}

// verify compares the copies of what the manifest has sizes and sums of, and reads
// those of the log, whose damage would be a copy's too.
func (b *backup) verify(ctx context.Context, c *Checkpoint) error {
	if err := b.verifySums(ctx, c); err != nil {
		return err
	}
	watched := vfs.Watch(b.to, vfs.Failed) // that the copy cannot be read does not mean the original
	v := newVerifier(watched, b.dir)
	v.header, v.kept = b.header, []Checkpoint{*c}
	if err := errors.Join(v.log(ctx, nil, nil), watched.Err()); err != nil {
		return err
	}
	for _, f := range v.Findings {
		if f.Damage() {
			return fault.Corrupt(b.original(f.Path), f.Offset, f.Length, "%s, which a copy would have too", f.Reason)
		}
	}
	return nil
}

// original returns the path of the file that one in the copy is made of.
func (b *backup) original(path string) string {
	if name, err := filepath.Rel(b.dir, path); err == nil {
		return filepath.Join(b.Checkpointer.dir, name)
	}
	return path
}

func (b *backup) verifySums(ctx context.Context, c *Checkpoint) error {
	images, err := openImages(b.to, b.dir, b.header.DatabaseID, c)
	if err != nil {
		return err
	}
	err = errors.Join(verifyImages(ctx, images), closeImages(images))
	check := func(f FileInfo) {
		if err == nil {
			err = mapfile.Check(ctx, b.to, filepath.Join(b.dir, filepath.FromSlash(f.Name)), f.Size, f.Sum)
		}
	}
	for _, x := range c.Indexes {
		for _, f := range x.Files {
			check(FileInfo{Name: f.Name, Size: f.Size, Sum: f.Sum})
		}
	}
	if c.Suspects != nil {
		check(*c.Suspects)
	}
	return err
}

const wholeFile = 1 << 62

// copy copies at most limit bytes of a file of the database, durably, and reads
// them back. Names are relative, with slashes.
func (b *backup) copy(ctx context.Context, fromName, toName string, limit int64) (err error) {
	source := filepath.Join(b.Checkpointer.dir, filepath.FromSlash(fromName))
	from, err := b.Checkpointer.files.OpenRead(source)
	if errors.Is(err, fs.ErrNotExist) {
		return &fault.File{Kind: fault.ErrMissingFile, Path: source, Reason: "the database needs it"}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	path := filepath.Join(b.dir, filepath.FromSlash(toName))
	if err := b.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	to, err := b.to.Create(path)
	if err != nil {
		return err
	}
	b.files++
	w := vfs.NewPacedWriter(to, 0)
	err = copyBytes(ctx, w, io.NewSectionReader(from, 0, limit))
	if err == nil {
		err = w.Finish()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("backup %s: %w", path, err)
	}
	b.bytes += w.Size()
	return mapfile.Check(ctx, b.to, path, w.Size(), w.Sum64())
}

// copyBytes is io.Copy with a context.
func copyBytes(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
