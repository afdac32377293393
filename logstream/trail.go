package logstream

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// trail is one stream as a scan finds it: its files, and what the headers of
// those behind the start of the scan say.
type trail struct {
	*source
	codec   *codec
	id      [16]byte
	live    bool // the log is being written: the newest header may be half there
	listed  bool // firsts are all files: nobody makes others meanwhile
	firsts  []Position
	headers map[Position]segmentHeader // usable ones
	flaws   map[Position]flaw          // of files without a usable header
}

// listSegments returns the first positions of the segment files by stream,
// ascending. A missing directory is an empty log.
func listSegments(fsys vfs.FS, dir string, g geometry) ([][]Position, error) {
	lists := make([][]Position, g.streams)
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		stream, first, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		if stream >= g.streams || g.segmentOf(first) != first || first >= 2*MaxPosition { // space is prepared behind the end
			return nil, g.foreign(joinPath(dir, name), "a segment by its name")
		}
		lists[stream] = append(lists[stream], first)
	}
	for _, list := range lists {
		slices.Sort(list)
	}
	return lists, nil
}

// foreign says that a file is of a log with another number of streams or another
// segment size.
func (g geometry) foreign(path, what string) error {
	return &fault.File{Kind: fault.ErrForeignFile, Path: path,
		Reason: fmt.Sprintf("%s, but not of a log with %d streams and segment size %d", what, g.streams, g.segmentBytes)}
}

// isMissing reports whether a segment is known to have no file.
func (t *trail) isMissing(first Position) bool {
	if !t.listed {
		return false
	}
	_, found := slices.BinarySearch(t.firsts, first)
	return !found
}

// loadHeaders reads the headers of all segments that may hold something at or
// behind from.
func (t *trail) loadHeaders(from Position) error {
	for _, first := range t.firsts {
		if t.next(first) < from {
			continue
		}
		if err := t.loadHeader(first); err != nil {
			return err
		}
	}
	return nil
}

// loadHeader reads one header, again if it was not usable before.
func (t *trail) loadHeader(first Position) error {
	if _, ok := t.headers[first]; ok {
		return nil
	}
	if t.isMissing(first) {
		return nil
	}
	b := make([]byte, segmentHeaderBytes(t.streams))
	n, err := t.readAt(b, first)
	if errors.Is(err, fault.ErrMissingFile) {
		delete(t.flaws, first)
		return nil
	}
	if err != nil {
		return err
	}
	h, f, err := readSegmentHeader(b[:n], t.path(first), t.geometry, t.id, t.stream, first)
	switch {
	case t.live && (err != nil || f != flawNone):
		t.flaws[first] = flawShort
		return nil
	case err != nil:
		return err
	case f != flawNone:
		t.flaws[first] = f
		return nil
	}
	delete(t.flaws, first)
	t.headers[first] = h
	return nil
}

// follow returns where the data go on behind an end p: in the next segment, if
// that says that the data before it end at p, and p itself otherwise.
func (t *trail) follow(p Position) Position {
	for {
		next := t.goOn(p)
		h, ok := t.headers[next]
		if !ok || h.prevEnd != p {
			return p
		}
		p = t.dataStart(next)
	}
}

// limit is where the data of a segment end, if that is known.
func (t *trail) limit(first Position) (Position, bool) {
	h, ok := t.headers[t.next(first)]
	return h.prevEnd, ok
}

// incarnations collects the incarnations that the headers of all streams name
// and checks that they belong together.
func incarnations(trails []*trail) (newest *incarnation, err error) {
	all := make(map[uint64]*incarnation)
	for _, t := range trails {
		for _, first := range t.firsts {
			h, ok := t.headers[first]
			if !ok {
				continue
			}
			if known := all[h.number]; known != nil && !known.equal(&h.incarnation) {
				return nil, t.foreign(first)
			}
			all[h.number] = &h.incarnation
			if newest == nil || h.number > newest.number {
				newest = &h.incarnation
			}
		}
	}
	for _, t := range trails {
		for first, h := range t.headers {
			if before := all[h.number-1]; before != nil && before.salt != h.prevSalt {
				return nil, t.foreign(first)
			}
		}
	}
	return newest, nil
}

func (t *trail) foreign(first Position) error {
	return &fault.File{Kind: fault.ErrForeignFile, Path: t.path(first),
		Reason: "it comes from another copy of the database: its incarnation does not fit the other segments"}
}
