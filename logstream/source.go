package logstream

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// maxOpenSegments bounds the files that a source keeps open for reading.
const maxOpenSegments = 64

// source reads the segment files of one stream. It keeps the files that were
// used last open. A file that is dropped while somebody reads from it is
// closed by the last reader. Safe for concurrent use.
type source struct {
	geometry
	fs     vfs.FS
	dir    string
	stream int

	mu     sync.Mutex
	open   map[Position]*segmentReader
	uses   uint64
	closed bool
}

// segmentReader is an open file and the readers inside it. All fields are
// guarded by source.mu.
type segmentReader struct {
	file    vfs.File
	refs    int
	lastUse uint64
	dropped bool // the last reader closes the file
}

func newSource(g geometry, fsys vfs.FS, dir string, stream int) *source {
	return &source{geometry: g, fs: fsys, dir: dir, stream: stream, open: make(map[Position]*segmentReader)}
}

func (s *source) path(first Position) string { return segmentPath(s.dir, s.stream, first) }

// readAt reads what there is of b at p, which lies in one segment. It returns
// less than asked for where the file ends. A file that does not exist gives
// fault.ErrMissingFile.
func (s *source) readAt(b []byte, p Position) (int, error) {
	first := s.segmentOf(p)
	b = b[:min(uint64(len(b)), uint64(s.next(first)-p))]
	r, err := s.acquire(first)
	if err != nil {
		return 0, err
	}
	defer s.release(r)
	n, err := r.file.ReadAt(b, int64(p-first))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (s *source) acquire(first Position) (*segmentReader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fault.ErrClosed
	}
	r := s.open[first]
	if r == nil {
		file, err := s.openRead(first)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &fault.File{Kind: fault.ErrMissingFile, Path: s.path(first), Reason: "a segment of the log"}
		}
		if err != nil {
			return nil, err
		}
		s.evict()
		r = &segmentReader{file: file}
		s.open[first] = r
	}
	s.uses++
	r.lastUse = s.uses
	r.refs++
	return r, nil
}

// openRead opens a file for reading. Where the process is short of descriptors, those
// that are open ahead of need are given up for it.
func (s *source) openRead(first Position) (vfs.File, error) {
	file, err := s.fs.OpenRead(s.path(first))
	if len(s.open) == 0 || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return file, err
	}
	for other := range s.open {
		s.dropLocked(other)
	}
	return s.fs.OpenRead(s.path(first))
}

func (s *source) release(r *segmentReader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.refs--
	r.closeUnused()
}

// closeUnused ignores the error of Close: nothing was written.
func (r *segmentReader) closeUnused() {
	if r.dropped && r.refs == 0 {
		_ = r.file.Close()
	}
}

// evict makes room for one more open file.
func (s *source) evict() {
	if len(s.open) < maxOpenSegments {
		return
	}
	var oldest Position
	for first, r := range s.open {
		if o := s.open[oldest]; o == nil || r.lastUse < o.lastUse {
			oldest = first
		}
	}
	s.dropLocked(oldest)
}

func (s *source) drop(first Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(first)
}

func (s *source) dropLocked(first Position) {
	if r := s.open[first]; r != nil {
		delete(s.open, first)
		r.dropped = true
		r.closeUnused()
	}
}

// close ends the source. Readers inside finish.
func (s *source) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for first := range s.open {
		s.dropLocked(first)
	}
}
