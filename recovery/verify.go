package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/txn"
)

// verifier reads all files of a database.
type verifier struct {
	VerifyReport
	files  *vfs.Watched // refusals are no damage
	dir    string
	header Header
	kept   []Checkpoint // newest last
	known  map[string]bool
	sums   map[string]bool // files that were compared with their checksum
}

func newVerifier(files vfs.FS, dir string) *verifier {
	return &verifier{files: vfs.Watch(files, vfs.Refused), dir: dir, known: map[string]bool{}, sums: map[string]bool{}}
}

// Verify reads every file of a database that is not open, and changes nothing.
// What is found is in the report; an error means that it could not be completed, and
// that the report ends there.
func Verify(ctx context.Context, files vfs.FS, dir string) (*VerifyReport, error) {
	v := newVerifier(files, dir)
	err := v.all(ctx)
	return &v.VerifyReport, errors.Join(err, v.files.Err())
}

func (v *verifier) all(ctx context.Context) error {
	usable, err := v.manifest()
	if err != nil || !usable {
		return err
	}
	if err := v.checkpoints(ctx); err != nil {
		return err
	}
	if err := v.log(ctx, nil, nil); err != nil {
		return err
	}
	if err := v.tail(ctx); err != nil {
		return err
	}
	return v.strays()
}

// Verify reads every file that the running database is made of.
func (c *Checkpointer) Verify(ctx context.Context) (*VerifyReport, error) {
	v := newVerifier(c.files, c.dir)
	c.mu.Lock()
	_, err := v.manifest()
	v.header, v.kept = c.header, slices.Clone(c.kept) // what is running, whatever the manifest says by now
	c.mu.Unlock()
	if err == nil {
		err = v.checkpoints(ctx)
	}
	if err == nil {
		err = v.log(ctx, c.Log.DurableEnds(), c.oldestReplay)
	}
	v.forgetRemoved(c.stillNeeded())
	return &v.VerifyReport, errors.Join(err, v.files.Err())
}

// oldestReplay returns the positions before which segments may have been removed by
// now.
func (c *Checkpointer) oldestReplay() []logstream.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == 0 {
		return nil
	}
	return c.kept[0].Replay
}

// stillNeeded returns the files that are there for good reason now, and the folders.
func (c *Checkpointer) stillNeeded() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	needed := map[string]bool{filepath.Clean(c.dir): true}
	for _, name := range []string{currentName, manifestName(c.manifest.number), LogDir, checkpointDir} {
		needed[filepath.Join(c.dir, name)] = true
	}
	for _, k := range c.needs() {
		for name := range k.Files {
			needed[filepath.Join(c.dir, filepath.FromSlash(name))] = true
		}
	}
	for _, s := range c.Log.Segments() {
		needed[filepath.Join(c.dir, LogDir, logstream.SegmentName(s.Stream, s.First))] = true
	}
	return needed
}

// forgetRemoved drops findings about files that were let go of meanwhile.
func (v *verifier) forgetRemoved(needed map[string]bool) {
	v.Findings = slices.DeleteFunc(v.Findings, func(f Finding) bool { return !needed[filepath.Clean(f.Path)] })
}

func (v *verifier) path(name string) string { return filepath.Join(v.dir, filepath.FromSlash(name)) }

func (v *verifier) count(name string, bytes int64) {
	v.known[name] = true
	v.Files++
	v.Bytes += bytes
}

// manifest reads CURRENT and the manifest, and says whether there is one to go
// on with.
func (v *verifier) manifest() (usable bool, err error) {
	m, err := readManifest(v.files, v.dir, allRecords)
	if err != nil {
		v.Note(missingCurrent(err, v.dir), v.path(currentName), "the database does not open; salvage extracts its rows")
		return false, nil
	}
	data, err := readSmall(v.files, v.path(manifestName(m.Number)), maxRemainsBytes)
	if err != nil {
		return false, v.note(err, v.path(manifestName(m.Number)), "")
	}
	v.count(currentName, int64(len(manifestName(m.Number))+1))
	v.count(manifestName(m.Number), int64(len(data)))
	for _, flaw := range readRemains(v.path(manifestName(m.Number)), data).Flaws {
		f := findingOf(flaw, "", "the checkpoint in it is lost")
		if flaw.Offset+flaw.Length == int64(len(data)) && unfinished(data[flaw.Offset:], flaw.Offset) {
			f.Kind, f.Effect = Torn, "the checkpoint in it was not complete: the one before it serves"
		}
		v.Findings = append(v.Findings, f)
	}
	v.header = m.Header
	v.kept = m.Checkpoints[max(0, len(m.Checkpoints)-gc.KeptCheckpoints):]
	return true, nil
}

// missingCurrent gives the error for a missing CURRENT its type.
func missingCurrent(err error, dir string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &fault.File{Kind: fault.ErrMissingFile, Path: filepath.Join(dir, currentName), Reason: "no database, or CURRENT is lost"}
	}
	return err
}

// checkpoints reads the files of the kept checkpoints.
func (v *verifier) checkpoints(ctx context.Context) error {
	for i := range v.kept {
		c := &v.kept[i]
		effect := "checkpoint " + fmt.Sprint(c.Number) + " is unusable: an older one serves"
		if i == 0 {
			effect = "checkpoint " + fmt.Sprint(c.Number) + " is unusable as a substitute for a newer one"
		}
		v.Checkpoints++
		for _, check := range []func(context.Context, *Checkpoint, string) error{v.arrays, v.indexes, v.suspects, v.record} {
			if err := check(ctx, c, effect); err != nil {
				return err
			}
		}
	}
	return nil
}

// note adds a finding for damage; other errors end the verification.
func (v *verifier) note(err error, path, effect string) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	v.Note(err, path, effect)
	return nil
}

// arrays checks the array files: first page by page, which tells the place, then
// every byte.
func (v *verifier) arrays(ctx context.Context, c *Checkpoint, effect string) error {
	images, err := openImages(v.files, v.dir, v.header.DatabaseID, c)
	if err != nil {
		return errors.Join(v.note(err, v.dir, effect), v.arraySums(ctx, c, effect))
	}
	for _, t := range c.Tables {
		if err = v.array(ctx, images[t.Table], effect); err != nil {
			break
		}
	}
	return errors.Join(err, closeImages(images))
}

func (v *verifier) array(ctx context.Context, image *indirection.Image, effect string) error {
	if err := v.note(image.Verify(ctx), v.dir, effect); err != nil {
		return err
	}
	for _, g := range image.Generations() {
		name := arrayName(g.Number, image.Table())
		if err := v.sum(ctx, FileInfo{Name: name, Size: g.Size, Sum: g.Sum}, effect); err != nil {
			return err
		}
	}
	return nil
}

// arraySums checks the newest array file of each table on its own.
func (v *verifier) arraySums(ctx context.Context, c *Checkpoint, effect string) error {
	for _, t := range c.Tables {
		name := arrayName(t.Generation.Number, t.Table)
		if err := v.sum(ctx, FileInfo{Name: name, Size: t.Generation.Size, Sum: t.Generation.Sum}, effect); err != nil {
			return err
		}
	}
	return nil
}

// sum compares a whole file with its checksum, once.
func (v *verifier) sum(ctx context.Context, f FileInfo, effect string) error {
	if v.sums[f.Name] {
		return nil
	}
	v.sums[f.Name] = true
	v.count(f.Name, f.Size)
	return v.note(mapfile.Check(ctx, v.files, v.path(f.Name), f.Size, f.Sum), v.path(f.Name), effect)
}

func (v *verifier) indexes(ctx context.Context, c *Checkpoint, _ string) error {
	for _, x := range c.Indexes {
		for _, f := range x.Files {
			effect := fmt.Sprintf("index %d of table %d is rebuilt from the rows", x.Index, x.Table)
			if err := v.sum(ctx, FileInfo{Name: f.Name, Size: f.Size, Sum: f.Sum}, effect); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) suspects(ctx context.Context, c *Checkpoint, _ string) error {
	if c.Suspects == nil {
		return nil
	}
	const effect = "dead index entries stay behind"
	if err := v.sum(ctx, *c.Suspects, effect); err != nil {
		return err
	}
	s := &State{Header: v.header, cfg: Config{FS: v.files, Dir: v.dir}}
	return v.note(s.readSuspects(c.Suspects, func(txn.Garbage) {}), v.path(c.Suspects.Name), effect)
}

// record compares the copy of the manifest record with the record.
func (v *verifier) record(_ context.Context, c *Checkpoint, _ string) error {
	path := v.path(recordFileName(c.Number))
	const effect = "the database opens; salvage would miss it if the manifest were lost"
	m, err := openManifest(v.files, path, allRecords)
	if errors.Is(err, fault.ErrMissingFile) {
		err = &fault.File{Kind: fault.ErrMissingFile, Path: path, Reason: "the copy of the manifest record"}
	}
	if err != nil {
		return v.note(err, path, effect)
	}
	v.count(recordFileName(c.Number), 0)
	if m.Torn || len(m.Checkpoints) != 1 || m.Checkpoints[0].Number != c.Number || m.DatabaseID != v.header.DatabaseID {
		err = fault.Corrupt(path, 0, 0, "not the record of checkpoint %d", c.Number)
	}
	return v.note(err, path, effect)
}

// log reads all segments. Of a log that is being written, until says what is
// durable, and removed before which positions segments may have gone; it is asked
// once it is known which there are.
func (v *verifier) log(ctx context.Context, until []logstream.Position, removed func() []logstream.Position) error {
	o := scanOptions(v.files, v.dir, &v.header, nil)
	if n := len(v.kept); n > 0 {
		o.From, o.Proven = v.kept[0].Replay, v.kept[n-1].Ends
	}
	archive, err := logstream.OpenArchive(o, until)
	if err != nil {
		return err
	}
	defer archive.Close()
	if removed != nil {
		archive.Removed(removed())
	}
	survey, err := archive.Survey(ctx, nil)
	if err != nil {
		return err
	}
	v.Rounds, v.Records = survey.Rounds, survey.Records
	for _, s := range archive.Segments() {
		v.known[LogDir+"/"+logstream.SegmentName(s.Stream, s.First)] = true
		v.Files++
	}
	v.Bytes += survey.Bytes
	for _, f := range slices.Concat(archive.Flaws(), survey.Damage) {
		v.known[LogDir+"/"+filepath.Base(f.Path)] = true
		v.Findings = append(v.Findings, findingOf(f, "", "commits may be lost"))
	}
	for _, f := range survey.Torn {
		torn := findingOf(f, "", "")
		torn.Kind = Torn
		v.Findings = append(v.Findings, torn)
	}
	return v.segments(archive)
}

// segments finds out which segments are missing.
func (v *verifier) segments(archive *logstream.Archive) error {
	for _, f := range archive.Missing() {
		v.Note(f, "", "commits are lost")
	}
	s := &State{cfg: Config{FS: v.files, Dir: v.dir}}
	for i := range v.kept {
		if err := v.note(s.requireSegments(&v.kept[i]), v.path(LogDir), "rows are lost"); err != nil {
			return err
		}
	}
	return nil
}

// tail asks recovery what it thinks of the end of the log.
func (v *verifier) tail(ctx context.Context) error {
	var base *Checkpoint
	if n := len(v.kept); n > 0 {
		base = &v.kept[n-1]
	}
	_, err := logstream.Scan(ctx, scanOptions(v.files, v.dir, &v.header, base), func(*logstream.Group) error { return nil })
	if err != nil && !damaged(err) {
		return err
	}
	return v.note(err, v.path(LogDir), "the database does not open; salvage extracts its rows")
}

// strays lists the files that belong to nothing.
func (v *verifier) strays() error {
	v.known[lockName] = true
	for _, folder := range []string{"", LogDir, checkpointDir} {
		if err := v.straysIn(folder); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) straysIn(folder string) error {
	names, err := v.files.List(v.path(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		name = strings.TrimPrefix(folder+"/"+name, "/")
		if name == LogDir || name == checkpointDir || v.known[name] {
			continue
		}
		info, err := v.files.Stat(v.path(name))
		switch {
		case err != nil:
			return err
		case info.Dir:
			err = v.straysIn(name)
		default:
			v.Findings = append(v.Findings, Finding{Kind: Stray, Path: v.path(name), Reason: "belongs to nothing"})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
