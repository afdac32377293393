package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// Config says what to open and with what.
type Config struct {
	FS       vfs.FS
	Dir      string
	ReadOnly bool   // change no byte, not even to create
	Verify   bool   // read and check every array and index file before serving
	New      Header // for a new database; Format and DatabaseID are filled in

	Arena    *arena.Arena
	Epochs   *epoch.Domain
	Logger   *slog.Logger
	Progress func(phase string, done, total int64) // may be nil
	Strategy func(name string) (index.Strategy, error)
}

// State is a recovered database: locked, mapped and replayed, not yet serving.
type State struct {
	Header   Header
	Strategy index.Strategy
	Arrays   map[rowid.Table]*indirection.Array
	Tail     logstream.Tail
	Report   Report

	cfg      Config
	lock     io.Closer
	manifest uint64               // number of the current manifest file
	kept     []Checkpoint         // newest last
	base     *Checkpoint          // the one recovered from, nil for none
	proven   []logstream.Position // per stream: what the newest checkpoint knew to be durable, also if it cannot be used or is lost
	mapped   map[rowid.Table]bool // tables whose arrays that one has

	tail    []logstream.Address // records of the tail that change index entries
	rebuilt map[indexID]bool    // indexes that need no tail
}

// Open recovers the database in a directory, or creates one. The caller closes
// the state in the end.
func Open(ctx context.Context, cfg Config) (_ *State, err error) {
	s := &State{
		cfg:    cfg,
		Arrays: map[rowid.Table]*indirection.Array{},
		mapped: map[rowid.Table]bool{},

		rebuilt: map[indexID]bool{},
	}
	opened := false
	defer func() {
		if !opened { // also when Progress has panicked
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", cfg.Dir, err)
	}
	opened = true
	return s, nil
}

func (s *State) open(ctx context.Context) error {
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"manifest", s.readManifest},
		{"strategy", s.chooseStrategy},
		{"map", s.mapArrays},
		{"replay", s.replay},
		{"secure", s.secure},
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.Report.Time(step.name, func() error { return step.run(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// LiveBytes returns how many bytes of the log the checkpoint names from which
// the database was recovered.
func (s *State) LiveBytes() int64 { return s.base.liveBytes() }

func (s *State) path(elem ...string) string {
	return filepath.Join(append([]string{s.cfg.Dir}, elem...)...)
}

func (s *State) progress(phase string, done, total int64) {
	if s.cfg.Progress != nil {
		s.cfg.Progress(phase, done, total)
	}
}

// takeLock locks the directory. Without its lock file nobody has the database
// open; to look at it no such file is made, and there is nothing to lock.
func (s *State) takeLock() error {
	var err error
	if s.cfg.ReadOnly {
		_, err = s.cfg.FS.Stat(s.path(lockName))
	} else {
		err = vfs.MkdirDurable(s.cfg.FS, s.cfg.Dir)
	}
	switch {
	case s.cfg.ReadOnly && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	lock, err := s.cfg.FS.Lock(s.path(lockName))
	if err == nil {
		s.lock = lock
	}
	return err
}

// readManifest takes the lock and reads what the directory says it holds.
func (s *State) readManifest(context.Context) error {
	if err := s.takeLock(); err != nil {
		return err
	}
	m, err := readManifest(s.cfg.FS, s.cfg.Dir, gc.KeptCheckpoints)
	if errors.Is(err, fs.ErrNotExist) {
		return s.create()
	}
	if err != nil {
		return advise(err)
	}
	s.Header, s.manifest = m.Header, m.Number
	s.kept = m.Checkpoints
	if m.Holes > 0 {
		s.fallback(manifestName(m.Number) + " is damaged before its last checkpoint, which serves")
	}
	switch {
	case m.Unfinished:
		s.fallback("the last record of " + manifestName(m.Number) + " was being written: the checkpoint before it serves")
	case m.Torn:
		s.fallback("the last record of " + manifestName(m.Number) + " is damaged: the checkpoint before it serves")
	}
	return nil
}

func (s *State) chooseStrategy(context.Context) (err error) {
	s.Report.Strategy = s.Header.Strategy
	s.Strategy, err = s.cfg.Strategy(s.Header.Strategy)
	return err
}

func (s *State) fallback(text string) {
	s.Report.Fallbacks = append(s.Report.Fallbacks, text)
	s.cfg.Logger.Warn("recovery falls back", "reason", text)
}

// create makes a new database where there is none. Whatever a crash leaves of
// it has no CURRENT and no log, and is taken for a place to create one.
func (s *State) create() error {
	if err := s.refuseRemains(); err != nil {
		return err
	}
	h := s.cfg.New
	h.Format = FormatVersion
	if _, err := rand.Read(h.DatabaseID[:]); err != nil {
		return err
	}
	if err := h.validate(s.path(currentName)); err != nil {
		return err
	}
	for _, dir := range []string{LogDir, checkpointDir} {
		if err := s.cfg.FS.MkdirAll(s.path(dir)); err != nil {
			return err
		}
	}
	if err := s.cfg.FS.SyncDir(filepath.Dir(s.cfg.Dir)); err != nil { // a killed process may have made it
		return err
	}
	w := manifestWriter{files: s.cfg.FS, dir: s.cfg.Dir, header: h}
	if err := w.begin(nil); err != nil {
		return err
	}
	s.Header, s.manifest = h, w.number
	s.Report.Created = true
	return w.close()
}

// refuseRemains fails if a directory without CURRENT holds a part of a database:
// then CURRENT has been lost, or never come, and a new database would bury what
// is there.
func (s *State) refuseRemains() error {
	for _, dir := range []string{LogDir, checkpointDir} {
		names, err := s.cfg.FS.List(s.path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if len(names) > 0 {
			return advise(&fault.File{Kind: fault.ErrMissingFile, Path: s.path(currentName), Reason: fmt.Sprintf("%s holds %s", s.path(dir), strings.Join(names[:min(len(names), 3)], ", "))})
		}
	}
	if s.cfg.ReadOnly {
		return &fault.File{Kind: fault.ErrMissingFile, Path: s.path(currentName), Reason: "there is no database to open read-only"}
	}
	return nil
}

// advise says what to do about damage that recovery cannot get around.
func advise(err error) error {
	if err == nil || !damaged(err) || errors.Is(err, fault.ErrFormat) {
		return err
	}
	return fmt.Errorf("%w; Salvage extracts what can be read", err)
}

// mapArrays opens the array files of the newest checkpoint that is whole.
func (s *State) mapArrays(ctx context.Context) error {
	if err := s.proveEnds(); err != nil {
		return err
	}
	var failures []error
	for i := len(s.kept) - 1; i >= 0; i-- {
		c := &s.kept[i]
		err := s.requireSegments(c)
		if err == nil {
			err = s.mapCheckpoint(ctx, c)
		}
		if err == nil {
			s.kept = s.kept[:i+1]
			s.base = c
			s.Report.Checkpoint, s.Report.TSc = c.Number, c.CTS
			return nil
		}
		if !damaged(err) {
			return err
		}
		failures = append(failures, fmt.Errorf("checkpoint %d: %w", c.Number, err))
		s.fallback(fmt.Sprintf("checkpoint %d is unusable: %v", c.Number, err))
	}
	if len(s.kept) < gc.KeptCheckpoints {
		s.kept = nil // no segment has been let go yet: the log from its start serves
		return nil
	}
	return advise(errors.Join(failures...))
}

// proveEnds finds out what is known about the end of the log. The record in a
// checkpoint's folder is written once the log is durable and before the manifest has
// it: it proves how far the log went also where the manifest lost it.
func (s *State) proveEnds() error {
	s.proven = make([]logstream.Position, s.Header.LogStreams)
	known := uint64(0)
	if n := len(s.kept); n > 0 {
		copy(s.proven, s.kept[n-1].Ends)
		known = s.kept[n-1].Number
	}
	newest, err := newestFolder(s.cfg.FS, s.path(checkpointDir))
	if err != nil || newest <= known {
		return err
	}
	m, err := openManifest(s.cfg.FS, s.path(filepath.FromSlash(recordFileName(newest))), allRecords)
	switch {
	case err != nil && damaged(err): // a crash has left it
		return nil
	case err != nil:
		return err
	case m.DatabaseID != s.Header.DatabaseID || m.LogStreams != s.Header.LogStreams || len(m.Checkpoints) == 0:
		return nil
	}
	for stream, end := range m.Checkpoints[0].Ends {
		s.proven[stream] = max(s.proven[stream], end)
	}
	return nil
}

// newestFolder returns the highest number of a checkpoint that has a folder, 0 if
// none has.
func newestFolder(files vfs.FS, dir string) (newest uint64, err error) {
	names, err := files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, name := range names {
		if n, ok := parseNumber(name); ok {
			newest = max(newest, n)
		}
	}
	return newest, err
}

// requireSegments makes sure that the log segments which rows of a checkpoint lie
// in exist: a row would otherwise be missed when it is first read.
func (s *State) requireSegments(c *Checkpoint) error {
	if len(c.Live) == 0 {
		return nil
	}
	names, err := s.cfg.FS.List(s.path(LogDir))
	if err != nil {
		return err
	}
	for _, live := range c.Live {
		name := logstream.SegmentName(live.Stream, live.First)
		if _, found := slices.BinarySearch(names, name); !found {
			return &fault.File{Kind: fault.ErrMissingFile, Path: s.path(LogDir, name), Reason: "log segment with live rows"}
		}
	}
	return nil
}

// damaged tells what is wrong with the files from what is wrong with the
// machine: only the former is a reason to use older files. The format of a
// database stands in its manifest, so a file of another one is damage too.
func damaged(err error) bool {
	return errors.Is(err, fault.ErrCorrupt) || errors.Is(err, fault.ErrMissingFile) || errors.Is(err, fault.ErrFormat) ||
		errors.Is(err, fault.ErrForeignFile) || errors.Is(err, fs.ErrNotExist)
}

func (s *State) mapCheckpoint(ctx context.Context, c *Checkpoint) error {
	images, err := openImages(s.cfg.FS, s.cfg.Dir, s.Header.DatabaseID, c)
	if err != nil {
		return err
	}
	if s.cfg.Verify {
		err = verifyImages(ctx, images)
	}
	if err != nil {
		return errors.Join(err, closeImages(images))
	}
	for table, image := range images {
		s.Arrays[table] = indirection.NewArray(s.cfg.Epochs, s.cfg.Arena, table, image)
		s.mapped[table] = true
	}
	return closeImages(images) // the arrays keep what they need
}

func arrayPath(dir string, checkpoint uint64, table rowid.Table) string {
	return filepath.Join(dir, filepath.FromSlash(arrayName(checkpoint, table)))
}

func openImages(files vfs.FS, dir string, id ID, c *Checkpoint) (map[rowid.Table]*indirection.Image, error) {
	images := map[rowid.Table]*indirection.Image{}
	for _, t := range c.Tables {
		path := func(generation uint64) string { return arrayPath(dir, generation, t.Table) }
		image, err := indirection.OpenImage(files, t.Generation, path, id)
		if err == nil && image.Table() != t.Table {
			err = errors.Join(fault.Corrupt(path(t.Generation.Number), 0, 0, "array of table %d, not %d", image.Table(), t.Table), image.Close())
		}
		if err != nil {
			return nil, errors.Join(err, closeImages(images))
		}
		images[t.Table] = image
	}
	return images, nil
}

func verifyImages(ctx context.Context, images map[rowid.Table]*indirection.Image) error {
	for _, image := range images {
		if err := image.Verify(ctx); err != nil {
			return err
		}
	}
	return nil
}

func closeImages(images map[rowid.Table]*indirection.Image) error {
	var errs []error
	for _, image := range images {
		errs = append(errs, image.Close())
	}
	return errors.Join(errs...)
}

// scanOptions is the part of the log that the checkpoint c does not describe.
// A nil c stands for the empty database.
func scanOptions(files vfs.FS, dir string, h *Header, c *Checkpoint) logstream.ScanOptions {
	o := logstream.ScanOptions{
		FS:           files,
		Dir:          filepath.Join(dir, LogDir),
		DatabaseID:   h.DatabaseID,
		Streams:      h.LogStreams,
		SegmentBytes: h.SegmentBytes,
	}
	if c != nil {
		o.From, o.Proven, o.AfterCTS, o.AfterRound = c.Replay, c.Ends, c.CTS, c.Round
	}
	return o
}

// replayBatch changes of a table are applied together, in the order of slots.
const replayBatch = 1 << 15

// replay applies the tail to the arrays.
func (s *State) replay(ctx context.Context) error {
	o := scanOptions(s.cfg.FS, s.cfg.Dir, &s.Header, s.base)
	o.Proven = s.proven
	o.AllHeaders = s.cfg.Verify
	o.Progress = func(done, total int64) { s.progress("replay", done, total) }
	var p replay
	add := func(a logstream.Address, r logstream.Record) error { return s.replayRecord(&p, a, r) }
	tail, err := logstream.Scan(ctx, o, func(g *logstream.Group) error {
		s.Report.GroupsReplayed++
		return g.Records(add)
	})
	if err != nil {
		return advise(err)
	}
	for _, t := range p.tables {
		if err := t.array.SetBatch(0, t.changes); err != nil {
			return err
		}
		if s.Strategy.Persistent() && !s.cfg.ReadOnly { // else nobody asks
			t.array.NoteFree()
		}
	}
	s.Tail = tail
	s.Report.BytesDropped, s.Report.DropReason = tail.Dropped, tail.Reason
	s.Report.TailBytes = s.tailBytes()
	return nil
}

// replay holds the changes of a replay that are not applied yet.
type replay struct {
	tables map[rowid.Table]*tableReplay
	last   *tableReplay // records of one table come in runs
}

type tableReplay struct {
	table   rowid.Table
	array   *indirection.Array
	changes []indirection.Change
}

func (p *replay) of(s *State, table rowid.Table) *tableReplay {
	if p.last != nil && p.last.table == table {
		return p.last
	}
	t := p.tables[table]
	if t == nil {
		t = &tableReplay{table: table, array: s.array(table)}
		if p.tables == nil {
			p.tables = map[rowid.Table]*tableReplay{}
		}
		p.tables[table] = t
	}
	p.last = t
	return t
}

// replayRecord changes the slot of a record's row: to the record, or to
// nothing. Records come in commit order, and the changes of a batch are made in
// that order.
func (s *State) replayRecord(p *replay, address logstream.Address, r logstream.Record) error {
	s.Report.RecordsReplayed++
	if s.Strategy.Persistent() && changesEntries(&r) {
		s.tail = append(s.tail, address)
	}
	t := p.of(s, r.Row.Table())
	if !s.plausible(t.array, r.Row) {
		path, offset := s.place(address)
		return fault.Corrupt(path, offset, 0, "row %v is far behind all others of its table", r.Row)
	}
	word, onlyIf := effect(address, r.Kind, r.Origin())
	t.changes = append(t.changes, indirection.Change{Ordinal: r.Row.Ordinal(), Word: word, OnlyIf: onlyIf})
	if len(t.changes) < replayBatch {
		return nil
	}
	err := t.array.SetBatch(0, t.changes)
	t.changes = t.changes[:0]
	return err
}

// maxUnlogged bounds how many rows can have been inserted and neither committed nor
// rolled back at one time: they take at least 64 bytes of memory each.
const maxUnlogged = 1 << 32

// plausible reports whether a row of the tail can have its ordinal, as they are given
// out one after the other. Arrays have room for all ordinals up to the largest one.
func (s *State) plausible(array *indirection.Array, row rowid.ID) bool {
	return row.Ordinal() < array.HighWater()+uint64(s.Report.RecordsReplayed)+maxUnlogged
}

// place is where a record lies.
func (s *State) place(a logstream.Address) (path string, offset int64) {
	first := a.Position() &^ logstream.Position(s.Header.SegmentBytes-1)
	return s.path(LogDir, logstream.SegmentName(a.Stream(), first)), int64(a.Position() - first)
}

// array returns the array of a table, which is new if the checkpoint did not
// know the table.
func (s *State) array(table rowid.Table) *indirection.Array {
	array, ok := s.Arrays[table]
	if !ok {
		array = indirection.NewArray(s.cfg.Epochs, s.cfg.Arena, table, nil)
		s.Arrays[table] = array
	}
	return array
}

// tailBytes is the length of the log between the checkpoint and its end.
func (s *State) tailBytes() int64 {
	var bytes int64
	for stream, end := range s.Tail.Ends {
		bytes += int64(end)
		if s.base != nil {
			bytes -= int64(s.base.Replay[stream])
		}
	}
	return bytes
}

// effect is what a record leaves in its row's slot, and if not in any case, what
// the slot has to hold before: a relocation of an image that is no longer the
// row's newest one changes nothing. Replay and fold agree because both ask here.
func effect(address logstream.Address, kind logstream.Kind, origin logstream.Origin) (word, onlyIf indirection.Word) {
	switch kind {
	case logstream.Delete:
		return 0, 0
	case logstream.Relocation:
		return indirection.FromAddress(address), indirection.FromAddress(origin.Address)
	}
	return indirection.FromAddress(address), 0
}

// changesEntries reports whether a record adds or takes away index entries.
func changesEntries(r *logstream.Record) bool {
	switch r.Kind {
	case logstream.Image:
		return len(r.Keys) > 0
	case logstream.Relocation:
		return false
	}
	return true
}

// secure writes the end of the tail again, so that what is about to be served
// cannot be lost by a second crash.
func (s *State) secure(context.Context) error {
	if s.cfg.ReadOnly {
		return nil
	}
	return logstream.Secure(s.LogOptions(), s.Tail)
}

// LogOptions are the options that the log of this database is opened with.
func (s *State) LogOptions() logstream.Options {
	return logstream.Options{
		FS:           s.cfg.FS,
		Dir:          s.path(LogDir),
		DatabaseID:   s.Header.DatabaseID,
		Streams:      s.Header.LogStreams,
		SegmentBytes: s.Header.SegmentBytes,
		Logger:       s.cfg.Logger,
	}
}

// CloseArrays frees the arrays and lets go of the files that they map. Nobody
// uses them any more.
func (s *State) CloseArrays() error {
	var errs []error
	for _, array := range s.Arrays {
		errs = append(errs, array.Close())
	}
	clear(s.Arrays)
	return errors.Join(errs...)
}

// Close closes what is still open and releases the lock of the directory.
func (s *State) Close() error {
	err := s.CloseArrays()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}
