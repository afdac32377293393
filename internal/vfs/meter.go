package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Meter is a file system that knows how many bytes the files below a directory
// have and how many are mapped, without asking the system. Others must not
// change the directory meanwhile.
type Meter struct {
	FS
	dir    string
	mapped atomic.Int64

	mu       sync.Mutex
	files    map[string]*meteredSize
	bytes    map[string]int64 // by the first name below dir, "" for files in it
	total    int64
	surveyed bool
}

// meteredSize is the size of a file that exists. It only changes under
// Meter.mu; to look whether it has to is free.
type meteredSize struct {
	part  string
	bytes atomic.Int64
	gone  bool // removed or replaced, but perhaps open still
}

// NewMeter returns fs with a meter for a directory. It counts what is made
// through it; Survey adds what exists.
func NewMeter(fs FS, dir string) *Meter {
	return &Meter{FS: fs, dir: filepath.Clean(dir), files: map[string]*meteredSize{}, bytes: map[string]int64{}}
}

// Survey counts the files that exist, but for those that it knows already. It
// does so once: what comes and goes later is counted anyway.
func (m *Meter) Survey() error {
	m.mu.Lock() // who removes a file while it is counted waits for this to take it off again
	defer m.mu.Unlock()
	if m.surveyed {
		return nil
	}
	err := m.survey(m.dir)
	m.surveyed = err == nil
	return err
}

func (m *Meter) survey(dir string) error {
	names, err := m.FS.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := m.FS.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.ErrCorrupt): // gone, or no file of the database
		case err != nil:
			return err
		case info.Dir:
			if err := m.survey(path); err != nil {
				return err
			}
		case m.files[path] == nil:
			m.resize(m.enter(path), info.Size)
		}
	}
	return nil
}

// Mapped returns the bytes of the files that are mapped now; a file that is
// mapped twice counts twice.
func (m *Meter) Mapped() int64 { return m.mapped.Load() }

// Bytes returns the size of all files in and below a subdirectory, or of those
// in the directory itself if the name is empty.
func (m *Meter) Bytes(subdirectory string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes[subdirectory]
}

// Total returns the size of all files in and below the directory.
func (m *Meter) Total() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}

// enter makes the entry of a new, empty file. The caller holds mu.
func (m *Meter) enter(path string) *meteredSize {
	path = filepath.Clean(path)
	m.leave(path)
	s := &meteredSize{part: m.part(path)}
	m.files[path] = s
	return s
}

// leave forgets the file of that name, if there is one. The caller holds mu.
func (m *Meter) leave(path string) {
	if s := m.files[path]; s != nil {
		m.resize(s, 0)
		s.gone = true
		delete(m.files, path)
	}
}

func (m *Meter) resize(s *meteredSize, size int64) {
	if s.gone {
		return
	}
	more := size - s.bytes.Swap(size)
	m.bytes[s.part] += more
	m.total += more
}

func (m *Meter) part(path string) string {
	below, err := filepath.Rel(m.dir, filepath.Dir(path))
	if err != nil || below == "." {
		return ""
	}
	first, _, _ := strings.Cut(filepath.ToSlash(below), "/")
	return first
}

// Create implements FS.
func (m *Meter) Create(name string) (File, error) {
	f, err := m.FS.Create(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &meteredFile{f, m, m.enter(name)}, nil
}

// Open implements FS.
func (m *Meter) Open(name string) (File, error) {
	f, err := m.FS.Open(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.files[filepath.Clean(name)]; s != nil {
		return &meteredFile{f, m, s}, nil
	}
	size, err := f.Size()
	if err != nil {
		return nil, joinErrors(err, f.Close())
	}
	s := m.enter(name)
	m.resize(s, size)
	return &meteredFile{f, m, s}, nil
}

// Remove implements FS.
func (m *Meter) Remove(name string) error {
	if err := m.FS.Remove(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(filepath.Clean(name))
	return nil
}

// Rename implements FS.
func (m *Meter) Rename(from, to string) error {
	if err := m.FS.Rename(from, to); err != nil {
		return err
	}
	from, to = filepath.Clean(from), filepath.Clean(to)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.files[from]
	if s == nil || from == to {
		return nil
	}
	m.leave(to)
	delete(m.files, from)
	size := s.bytes.Load()
	m.resize(s, 0)
	s.part = m.part(to)
	m.files[to] = s
	m.resize(s, size)
	return nil
}

// Map implements FS.
func (m *Meter) Map(name string, size int64) (Mapping, error) {
	mapping, err := m.FS.Map(name, size)
	if err != nil {
		return nil, err
	}
	mm := &meteredMapping{Mapping: mapping, m: m}
	mm.bytes.Store(size)
	m.mapped.Add(mm.bytes.Load())
	return mm, nil
}

type meteredFile struct {
	File
	m    *Meter
	size *meteredSize
}

func (f *meteredFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	if end := off + int64(n); n > 0 && end > f.size.bytes.Load() {
		f.grow(end)
	}
	return n, err
}

func (f *meteredFile) grow(size int64) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.resize(f.size, max(size, f.size.bytes.Load()))
}

func (f *meteredFile) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.resize(f.size, size)
	return nil
}

type meteredMapping struct {
	Mapping
	m     *Meter
	bytes atomic.Int64 // 0 after Close
}

func (m *meteredMapping) Close() error {
	m.m.mapped.Add(-m.bytes.Swap(0))
	return m.Mapping.Close()
}
