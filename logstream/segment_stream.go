package logstream

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

const (
	prepareStep = 1 << 20   // zeros between two syncs, so that commits get in between
	zeroBytes   = 256 << 10 // zeros in one write
)

// segmentStream is the Stream on segment files.
//
// The segment that an incarnation begins with is extended in steps, and each
// step counts as prepared at once. Every later segment counts only when it is
// complete, so a file whose preparation fails can be dropped: nobody owns a
// position in it.
type segmentStream struct {
	*source
	id       [16]byte
	begin    Position      // where this incarnation's first segment begins
	prevEnd  Position      // where the data end before it
	prepared atomic.Uint64 // Position

	mu       sync.Mutex     // guards the two lists
	files    []*segmentFile // open for writing, ascending and adjacent
	segments []Position     // that hold data or held them

	// Of Prepare.
	dead  []DeadSegment
	aside string // suffix of the names of dead segments that are kept
	zeros []byte

	// Of Append and Sync.
	life    *incarnation
	current *segmentFile
	end     Position // of what was appended
}

// segmentFile is a segment open for writing.
type segmentFile struct {
	vfs.File
	first  Position
	filled int64 // zeros on disk, by Prepare
}

// DeadSegment is a file of prepared space, or of rounds that never became
// durable, behind the end of a log. The next incarnation clears it away before
// it uses the name again.
type DeadSegment struct {
	Stream int
	First  Position
	Keep   bool // it holds something: it is renamed, not removed
}

// newSegmentStream goes on behind end. It touches no file.
func newSegmentStream(src *source, id [16]byte, start *Start) *segmentStream {
	end := start.Ends[src.stream]
	s := &segmentStream{
		source:  src,
		id:      id,
		begin:   src.goOn(end),
		prevEnd: end,
		aside:   fmt.Sprintf("%s%d", droppedSuffix, start.Incarnation+1),
	}
	s.prepared.Store(uint64(s.begin))
	for _, seg := range start.Segments {
		if seg.Stream == src.stream {
			s.segments = append(s.segments, seg.First)
		}
	}
	for _, d := range start.Dead {
		if d.Stream == src.stream {
			s.dead = append(s.dead, d)
		}
	}
	return s
}

// droppedSuffix, with the number of the incarnation that did it, ends the name
// of a dead segment that was set aside.
const droppedSuffix = ".dropped-"

func (s *segmentStream) Prepared() Position { return Position(s.prepared.Load()) }

func (s *segmentStream) Prepare(target Position) error {
	if err := s.clearDead(); err != nil {
		return noSpace(err)
	}
	for s.Prepared() < target {
		f, err := s.fileToFill()
		if err != nil {
			return err
		}
		if err := s.fill(f, target); err != nil {
			return err
		}
	}
	return nil
}

// noSpace marks an error of preparing: nothing was lost. That does not hold for files
// that are not what they should be, such as those of another database in the place of
// this one: then there is nowhere to go on.
func noSpace(err error) error {
	if file := (*fault.File)(nil); errors.As(err, &file) {
		return err
	}
	return fmt.Errorf("%w: %w", fault.ErrNoSpace, err)
}

func (s *segmentStream) clearDead() error {
	for len(s.dead) > 0 {
		d := s.dead[0]
		err := s.clear(s.path(d.First), d.Keep)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.dead = s.dead[1:]
	}
	return nil
}

func (s *segmentStream) clear(path string, keep bool) error {
	if keep {
		return s.fs.Rename(path, path+s.aside)
	}
	return s.fs.Remove(path)
}

// fileToFill is the file that holds the first byte that is not prepared.
func (s *segmentStream) fileToFill() (*segmentFile, error) {
	first := s.segmentOf(s.Prepared())
	if f := s.file(first); f != nil {
		return f, nil
	}
	file, err := s.fs.Create(s.path(first))
	switch {
	case errors.Is(err, fs.ErrExist): // not known to Start: somebody else writes here
		return nil, err
	case err != nil: // it may be there all the same: the next try removes it
		s.dead = append(s.dead, DeadSegment{Stream: s.stream, First: first})
		return nil, noSpace(err)
	}
	if err := s.fs.SyncDir(s.dir); err != nil { // for want of a descriptor, for example
		s.dead = append(s.dead, DeadSegment{Stream: s.stream, First: first})
		return nil, noSpace(errors.Join(err, file.Close()))
	}
	f := &segmentFile{File: file, first: first}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
	return f, nil
}

func (s *segmentStream) file(first Position) *segmentFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.first == first {
			return f
		}
	}
	return nil
}

// fill extends f towards target: the first segment by one step, any other one
// to its end.
func (s *segmentStream) fill(f *segmentFile, target Position) error {
	goal := s.segmentBytes
	if f.first == s.begin {
		goal = min(goal, int64(target-f.first))
	}
	for f.filled < goal {
		if err := s.fillStep(f); err != nil {
			return err
		}
		if f.first == s.begin || f.filled == s.segmentBytes {
			s.prepared.Store(uint64(f.first) + uint64(f.filled))
		}
	}
	return nil
}

func (s *segmentStream) fillStep(f *segmentFile) error {
	if s.zeros == nil {
		s.zeros = make([]byte, min(zeroBytes, s.segmentBytes))
	}
	end := min(f.filled+prepareStep, s.segmentBytes)
	for at := f.filled; at < end; at += int64(len(s.zeros)) {
		if _, err := f.WriteAt(s.zeros, at); err != nil {
			return noSpace(err)
		}
	}
	if err := f.Datasync(); err != nil {
		return s.syncFailed(f, err)
	}
	f.filled = end
	return nil
}

// syncFailed drops a file in which nobody owns a position: it is made anew by
// the next try. In any other file a failed sync is final.
func (s *segmentStream) syncFailed(f *segmentFile, err error) error {
	if s.Prepared() > f.first {
		return err
	}
	s.mu.Lock()
	s.files = slices.DeleteFunc(s.files, func(o *segmentFile) bool { return o == f })
	s.mu.Unlock()
	s.dead = append(s.dead, DeadSegment{Stream: s.stream, First: f.first})
	return noSpace(errors.Join(err, f.Close()))
}

func (s *segmentStream) Begin(life *incarnation) error {
	s.life = life
	s.end = s.prevEnd
	f := s.file(s.begin)
	if err := s.enter(f); err != nil {
		return err
	}
	s.end = s.dataStart(s.begin)
	return f.Datasync()
}

// enter makes f the segment that is appended to.
func (s *segmentStream) enter(f *segmentFile) error {
	h := segmentHeader{
		incarnation: *s.life,
		stream:      s.stream,
		first:       f.first,
		prevEnd:     s.end,
		firstLife:   f.first == s.begin,
	}
	if _, err := f.WriteAt(h.encode(s.geometry, s.id), 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments = append(s.segments, f.first)
	s.current = f
	return nil
}

func (s *segmentStream) Append(round []byte, p Position) error {
	if first := s.segmentOf(p); first != s.current.first {
		if err := s.leave(s.current, first); err != nil {
			return err
		}
	}
	s.end = p + Position(len(round))
	_, err := s.current.WriteAt(round, int64(p-s.current.first))
	return err
}

// leave ends a segment, all of which is durable, and enters the next one.
func (s *segmentStream) leave(old *segmentFile, next Position) error {
	if err := s.enter(s.file(next)); err != nil {
		return err
	}
	s.mu.Lock()
	s.files = slices.DeleteFunc(s.files, func(o *segmentFile) bool { return o == old })
	s.mu.Unlock()
	return old.Close()
}

func (s *segmentStream) Sync() error { return s.current.Datasync() }

func (s *segmentStream) ReadAt(b []byte, p Position) (int, error) { return s.readAt(b, p) }

func (s *segmentStream) Segments() []Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Segment, len(s.segments))
	for i, first := range s.segments {
		list[i] = Segment{s.stream, first, s.next(first)}
	}
	return list
}

// Remove deletes a segment, and what was set aside under its name. The removal
// is not synced: if a crash undoes it, the segment is listed again.
func (s *segmentStream) Remove(first Position) error {
	if err := s.forget(first); err != nil {
		return err
	}
	s.drop(first)
	err := s.fs.Remove(s.path(first))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.removeAside(first)
	}
	if err != nil {
		s.remember(first)
	}
	return err
}

// remember lists a segment again that could not be removed, for another try.
func (s *segmentStream) remember(first Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearch(s.segments, first)
	s.segments = slices.Insert(s.segments, i, first)
}

// forget takes a segment off the list. The newest one stays.
func (s *segmentStream) forget(first Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.segments, first)
	if i < 0 || i == len(s.segments)-1 {
		return fmt.Errorf("%w: log segment %s cannot be removed", fault.ErrNotFound, SegmentName(s.stream, first))
	}
	s.segments = slices.Delete(s.segments, i, i+1)
	return nil
}

func (s *segmentStream) removeAside(first Position) error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	prefix := SegmentName(s.stream, first) + droppedSuffix
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			err = errors.Join(err, s.fs.Remove(joinPath(s.dir, name)))
		}
	}
	return err
}

// Trim cuts the newest segment behind its data and removes the files that were
// only prepared. The next incarnation begins in a segment of its own, so the
// space would lie idle as long as one row in the segment lives. Nothing is
// synced: space that comes back with a crash is dead space as before.
func (s *segmentStream) Trim() error {
	if s.current == nil {
		return nil
	}
	errs := []error{s.current.Truncate(int64(s.end - s.current.first))}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.first > s.current.first {
			errs = append(errs, f.Close(), s.fs.Remove(s.path(f.first)))
		}
	}
	s.files = slices.DeleteFunc(s.files, func(f *segmentFile) bool { return f.first > s.current.first })
	return errors.Join(errs...)
}

func (s *segmentStream) Close() error {
	s.source.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}
