package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// Engine is what a checkpointer needs of the running database.
type Engine struct {
	Log       *logstream.Log
	Manager   *txn.Manager
	Collector *gc.Collector
	Tables    func() []*txn.Table // those whose creation is durable, and perhaps newer ones
	Short     func() bool         // memory is short, and indexes are to do without copies of what is in files
	Eager     bool                // for tests: Compact chooses all segments that it may, and moves few rows at a time
}

// Checkpointer writes checkpoints, one at a time. Its methods are safe for
// concurrent use.
type Checkpointer struct {
	Engine
	files      vfs.FS
	dir        string
	header     Header
	persistent bool // the indexes have a part in it
	incomplete bool // some index had to be rebuilt and is not in the newest one
	logger     *slog.Logger

	mu       sync.Mutex
	kept     []Checkpoint                       // published, newest last
	pinned   []*Checkpoint                      // by backups under way
	next     uint64                             // number of the next one
	images   map[rowid.Table]*indirection.Image // nil before the first
	manifest manifestWriter

	newestCTS  atomic.Uint64
	newestLive atomic.Int64

	compaction compaction
}

// Result says what a checkpoint did.
type Result struct {
	Number   uint64 // 0: nothing had changed since the last one
	CTS      uint64
	Changes  int   // slots changed since the checkpoint before
	Bytes    int64 // written
	Duration time.Duration
}

// NewCheckpointer returns the checkpointer of a recovered database. What only a
// checkpoint needs is opened by the first one: Open is to be short.
func NewCheckpointer(s *State, e Engine) *Checkpointer {
	c := &Checkpointer{
		Engine: e,
		files:  s.cfg.FS,
		dir:    s.cfg.Dir,
		header: s.Header,
		logger: s.cfg.Logger,

		persistent: s.Strategy.Persistent(),
		incomplete: s.Strategy.Persistent() && len(s.rebuilt) > 0,
		kept:       slices.Clone(s.kept),
		manifest:   manifestWriter{files: s.cfg.FS, dir: s.cfg.Dir, header: s.Header, number: s.manifest},
	}
	if last := c.newest(); last != nil {
		c.newestCTS.Store(last.CTS)
		c.newestLive.Store(last.liveBytes())
	}
	c.compaction.h = c.Manager.Epochs.Register()
	c.compaction.h.SetPriority(arena.Shrink)
	return c
}

// prepare makes ready for the first checkpoint.
func (c *Checkpointer) prepare() (err error) {
	if c.images != nil {
		return nil
	}
	if c.next, err = c.firstFreeNumber(); err == nil {
		c.images, err = c.openNewest()
	}
	return err
}

// firstFreeNumber is above every checkpoint that was published or attempted,
// so that no file is ever written twice.
func (c *Checkpointer) firstFreeNumber() (uint64, error) {
	names, err := c.files.List(filepath.Join(c.dir, checkpointDir))
	if err != nil {
		return 0, err
	}
	var newest uint64
	for _, name := range names {
		if n, ok := parseNumber(name); ok {
			newest = max(newest, n)
		}
	}
	if last := c.newest(); last != nil {
		newest = max(newest, last.Number)
	}
	return newest + 1, nil
}

func (c *Checkpointer) newest() *Checkpoint {
	if len(c.kept) == 0 {
		return nil
	}
	return &c.kept[len(c.kept)-1]
}

func (c *Checkpointer) openNewest() (map[rowid.Table]*indirection.Image, error) {
	if c.newest() == nil {
		return map[rowid.Table]*indirection.Image{}, nil
	}
	return openImages(c.files, c.dir, c.header.DatabaseID, c.newest())
}

// NewestCTS returns the CTS that the newest checkpoint describes, 0 for none.
func (c *Checkpointer) NewestCTS() uint64 { return c.newestCTS.Load() }

// LiveBytes returns how many bytes of the log the newest checkpoint names, each
// record rounded up to its size class.
func (c *Checkpointer) LiveBytes() int64 { return c.newestLive.Load() }

// Run writes a checkpoint of what is durable, unless nothing has changed since
// the last one. After an error the database goes on as before; whether the
// checkpoint counts after a restart is then open, and either is right.
func (c *Checkpointer) Run(ctx context.Context) (Result, error) { return c.checkpoint(ctx, false) }

// Renew is Run, but writes a checkpoint too if nothing has changed: the one
// before the last then needs no more of the log than the last one.
func (c *Checkpointer) Renew(ctx context.Context) (Result, error) { return c.checkpoint(ctx, true) }

func (c *Checkpointer) checkpoint(ctx context.Context, again bool) (Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, err := c.advance(ctx, again)
	if err != nil {
		c.compaction.crowding.Store(0) // nothing goes without checkpoints
		return r, err
	}
	c.shrink(ctx)
	return r, nil
}

// shrink lets the indexes give memory back. What stays in memory because of an
// error there does no harm, so it is no failure of the checkpoint.
func (c *Checkpointer) shrink(ctx context.Context) {
	short := c.Short()
	for _, t := range c.Tables() {
		for number, ix := range t.Indexes {
			shrinker, ok := ix.(index.Shrinker)
			if !ok {
				continue
			}
			if err := shrinker.Shrink(ctx, short); err != nil && ctx.Err() == nil {
				c.logger.Warn("index does not give memory back", "table", t.Name(), "index", number, "error", err)
			}
		}
	}
}

// advance makes a checkpoint, unless nothing has changed.
func (c *Checkpointer) advance(ctx context.Context, again bool) (Result, error) {
	start := time.Now()
	if c.persistent {
		c.Manager.NoteEntries()
		defer c.Manager.ForgetEntries()
	}
	var mark logstream.Mark
	pin, err := c.Manager.PinSnapshot(func() (uint64, error) {
		var err error
		mark, err = c.Log.Mark(ctx)
		return mark.CTS, err
	})
	if err != nil {
		return Result{}, err
	}
	defer pin.Release()
	if last := c.newest(); last != nil && last.CTS == mark.CTS && !c.incomplete && !again || last == nil && mark.CTS == 0 {
		return Result{CTS: mark.CTS}, nil
	}
	r, err := c.run(ctx, mark)
	r.Duration = time.Since(start)
	return r, err
}

func (c *Checkpointer) run(ctx context.Context, mark logstream.Mark) (Result, error) {
	if err := c.prepare(); err != nil {
		return Result{}, fmt.Errorf("checkpoint: %w", err)
	}
	if c.next > maxNumber {
		return Result{}, fmt.Errorf("%w: checkpoint numbers are used up", fault.ErrNoSpace)
	}
	d := &draft{Checkpointer: c, live: liveBytes(c.newest()), images: map[rowid.Table]*indirection.Image{}}
	d.Number, d.CTS, d.Round, d.Replay, d.Ends = c.next, mark.CTS, mark.Round, mark.Replay, mark.Ends
	c.next++
	err := d.write(ctx)
	if err == nil {
		err = c.manifest.publish(&d.Checkpoint, c.kept)
	} else {
		err = errors.Join(err, d.discard())
	}
	d.end(err == nil)
	if err != nil {
		err = errors.Join(err, closeImages(d.images))
		return Result{}, fmt.Errorf("checkpoint %d: %w", d.Number, err)
	}
	if err := c.adopt(ctx, d); err != nil {
		return Result{}, err
	}
	return Result{Number: d.Number, CTS: d.CTS, Changes: d.changes, Bytes: d.bytes}, nil
}

// adopt makes a published draft the newest checkpoint and lets go of what is
// no longer needed. Failing to delete is not a failure of the checkpoint: the
// next one tries again.
func (c *Checkpointer) adopt(ctx context.Context, d *draft) error {
	c.kept = append(c.kept, d.Checkpoint)
	c.kept = slices.Clone(c.kept[max(0, len(c.kept)-gc.KeptCheckpoints):])
	c.newestCTS.Store(d.CTS)
	c.newestLive.Store(d.liveBytes())
	c.incomplete = false
	var errs []error
	for table, image := range d.images {
		if old := c.images[table]; old != nil {
			errs = append(errs, old.Close())
		}
		c.images[table] = image
	}
	c.rebase(ctx, d.images)
	if err := c.letGo(ctx); err != nil {
		c.logger.Warn("old files could not be deleted", "error", err)
	}
	return errors.Join(errs...)
}

// rebase lets the arrays read from the new images what they do not have in memory,
// so that older files are needed no more. A failure is none of the checkpoint: an
// array then keeps what it has.
func (c *Checkpointer) rebase(ctx context.Context, images map[rowid.Table]*indirection.Image) {
	for _, t := range c.Tables() {
		image := images[t.ID]
		if image == nil {
			continue
		}
		if err := t.Rows.Rebase(ctx, image); err != nil && ctx.Err() == nil {
			c.logger.Warn("array does not use the files of the checkpoint", "table", t.Name(), "error", err)
		}
	}
}

// Replace runs f, which puts another index in the place of one, while no
// checkpoint is under way. The next one is written even if nothing else changes.
func (c *Checkpointer) Replace(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := f()
	if err == nil {
		c.incomplete = true
	}
	return err
}

// Close releases the mapped files.
func (c *Checkpointer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(closeImages(c.images), c.manifest.close())
	c.images = nil
	return err
}

// draft is a checkpoint that is being written.
type draft struct {
	*Checkpointer
	Checkpoint
	live     map[gc.SegmentID]int64
	images   map[rowid.Table]*indirection.Image // of the tables that changed
	captures []index.Capture
	steps    yielder
	changes  int
	bytes    int64
}

func liveBytes(last *Checkpoint) map[gc.SegmentID]int64 {
	live := map[gc.SegmentID]int64{}
	if last != nil {
		for _, l := range last.Live {
			live[gc.SegmentID{Stream: l.Stream, First: l.First}] = l.Bytes
		}
	}
	return live
}

// path is that of a name inside the database directory.
func (c *Checkpointer) path(name string) string {
	return filepath.Join(c.dir, filepath.FromSlash(name))
}

func (d *draft) folder() string { return d.path(folderName(d.Number)) }

// write makes all files of the checkpoint durable.
func (d *draft) write(ctx context.Context) error {
	if err := d.files.MkdirAll(d.folder()); err != nil {
		return err
	}
	if err := d.writeArrays(ctx); err != nil {
		return err
	}
	var suspects suspectList
	d.Collector.Suspects(suspects.add) // what is worked off from here on may be in the capture
	if err := d.writeIndexes(ctx); err != nil {
		return err
	}
	if err := d.Manager.EntriesAtRisk(suspects.add); err != nil {
		return err
	}
	if err := d.writeSuspects(&suspects); err != nil {
		return err
	}
	d.Live = nil
	for id, bytes := range d.live {
		if bytes != 0 {
			d.Live = append(d.Live, SegmentLive{id.Stream, id.First, bytes})
		}
	}
	slices.SortFunc(d.Live, func(a, b SegmentLive) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.First, b.First))
	})
	if err := d.define(); err != nil {
		return err
	}
	written, err := writeRecord(d.files, d.dir, d.header, &d.Checkpoint)
	if err != nil {
		return err
	}
	d.bytes += written
	if err := d.files.SyncDir(d.folder()); err != nil {
		return err
	}
	return d.files.SyncDir(filepath.Join(d.dir, checkpointDir))
}

// define notes the definitions of the tables.
func (d *draft) define() error {
	for _, t := range d.Engine.Tables() {
		i, found := slices.BinarySearchFunc(d.Checkpoint.Tables, t.ID, func(x TableImage, id rowid.Table) int { return cmp.Compare(x.Table, id) })
		if !found { // created after TSc
			continue
		}
		definition, err := t.Schema.Marshal()
		if err != nil {
			return err
		}
		d.Checkpoint.Tables[i].Definition = definition
	}
	return nil
}

// writeRecord writes what the manifest will say of a checkpoint into its folder:
// only Verify and Salvage read it.
func writeRecord(files vfs.FS, dir string, h Header, c *Checkpoint) (bytes int64, err error) {
	data, err := encodeManifest(h, []Checkpoint{*c})
	if err != nil {
		return 0, err
	}
	return int64(len(data)), vfs.WriteFile(files, filepath.Join(dir, filepath.FromSlash(recordFileName(c.Number))), data)
}

// end tells the indexes how it went.
func (d *draft) end(published bool) {
	for _, capture := range d.captures {
		if published {
			capture.Published()
		} else {
			capture.Abandon()
		}
	}
}

// discard deletes the files of a draft that was not offered to the manifest.
func (d *draft) discard() error { return removeFolder(d.files, d.folder()) }

func removeFolder(files vfs.FS, folder string) error {
	names, err := files.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, files.Remove(filepath.Join(folder, name)))
	}
	return errors.Join(append(errs, files.Remove(folder))...)
}
