package logstream

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// Identity is what all segments of a log have in common.
type Identity struct {
	DatabaseID   [16]byte
	Streams      int
	SegmentBytes int64
}

// Identify reads the header of a segment. It is not ok if that is damaged or the
// file is none.
func Identify(files vfs.FS, path string) (id Identity, ok bool) {
	f, err := files.OpenRead(path)
	if err != nil {
		return id, false
	}
	b := make([]byte, segmentHeaderBytes(MaxStreams))
	n, _ := f.ReadAt(b, 0) // what cannot be read does not verify
	if f.Close() != nil || n < sectorBytes || string(b[segMagic:segVersion]) != segmentMagic {
		return id, false
	}
	id = Identity{[16]byte(b[segDatabase:]), int(b[segStreams]), int64(binary.LittleEndian.Uint64(b[segBytes:]))}
	g := geometry{id.Streams, id.SegmentBytes}
	if g.validate() != nil || n < segmentHeaderBytes(id.Streams) {
		return id, false
	}
	b = b[:segmentHeaderBytes(id.Streams)]
	at := len(b) - checksumBytes
	return id, xxhash.Sum64(b[:at]) == binary.LittleEndian.Uint64(b[at:])
}

// Archive gives access to what is left of a log that nobody writes to. It takes
// nothing for granted but checksums: segments may be missing, damaged, or from
// elsewhere. It is for one goroutine.
type Archive struct {
	codec  codec
	trails []*trail
	flaws  []*fault.File // of segments that cannot be used as a whole
	lives  []incarnation // that count, the newest first
	proven []Position    // per stream: known to have been durable
	from   []Position    // per stream: no segment behind has been removed
	until  []Position    // per stream: what lies behind is not looked at; nil if all is
}

// OpenArchive looks at the headers of all segments. Of o the fields FS to Proven
// count: before From segments may have been removed. Of a log that is being written, until says what
// is durable; for others it is nil.
func OpenArchive(o ScanOptions, until []Position) (*Archive, error) {
	opt := Options{FS: o.FS, Streams: o.Streams, SegmentBytes: o.SegmentBytes}.withDefaults()
	if err := opt.validate(); err != nil {
		return nil, err
	}
	g := opt.geometry()
	a := &Archive{codec: newCodec(g, o.DatabaseID), proven: make([]Position, g.streams), from: make([]Position, g.streams), until: until}
	copy(a.from, o.From)
	copy(a.proven, o.Proven)
	copy(a.proven, until)
	for s := range g.streams {
		a.trails = append(a.trails, &trail{
			source: newSource(g, o.FS, o.Dir, s), codec: &a.codec, id: o.DatabaseID,
			headers: make(map[Position]segmentHeader), flaws: make(map[Position]flaw),
		})
	}
	if err := a.list(&o); err != nil {
		a.Close()
		return nil, err
	}
	a.chooseLives()
	return a, nil
}

// Removed says that meanwhile segments before from may have been removed.
func (a *Archive) Removed(from []Position) {
	for s, p := range from {
		a.from[s] = max(a.from[s], p)
	}
}

// Close closes the files.
func (a *Archive) Close() {
	for _, t := range a.trails {
		t.close()
	}
}

// Flaws are the segments that cannot be used as a whole, and why.
func (a *Archive) Flaws() []*fault.File { return a.flaws }

// Segments lists the segments that are there and may hold something of this log.
func (a *Archive) Segments() (list []Segment) {
	for s, t := range a.trails {
		for _, first := range t.firsts {
			list = append(list, Segment{s, first, t.next(first)})
		}
	}
	return list
}

// list finds the segments and reads their headers.
func (a *Archive) list(o *ScanOptions) error {
	names, err := o.FS.List(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		stream, first, ok := parseSegmentName(name)
		if !ok {
			continue
		}
		if stream >= len(a.trails) || a.codec.segmentOf(first) != first {
			a.flaws = append(a.flaws, &fault.File{Kind: fault.ErrForeignFile, Path: joinPath(o.Dir, name), Reason: "no segment of this log has such a name"})
			continue
		}
		if t := a.trails[stream]; first < a.bound(stream) {
			t.firsts = append(t.firsts, first)
		}
	}
	for _, t := range a.trails {
		slices.Sort(t.firsts)
		t.firsts = slices.DeleteFunc(t.firsts, func(first Position) bool { return !a.load(t, first) })
	}
	return nil
}

// bound is where a stream ends at the latest.
func (a *Archive) bound(stream int) Position {
	if a.until == nil {
		return MaxPosition
	}
	return a.until[stream]
}

// load reads a header, and says whether the segment may belong to this log.
func (a *Archive) load(t *trail, first Position) bool {
	err := t.loadHeader(first)
	if err == nil {
		_, found := t.headers[first]
		return found || t.flaws[first] != flawNone // else it was removed meanwhile
	}
	var file *fault.File
	if !errors.As(err, &file) {
		file = &fault.File{Kind: fault.ErrCorrupt, Path: t.path(first), Reason: err.Error()}
	}
	a.flaws = append(a.flaws, file)
	return false
}

// family is the segments of one incarnation: those of different copies of a
// database may have incarnations with the same number.
type family struct {
	incarnation
	segments int
}

// chooseLives finds out which incarnations belong together: of all chains in
// which each names the salt of the one before, the one with most segments. The
// segments of others come from other copies of the database.
func (a *Archive) chooseLives() {
	families := a.families()
	var best []incarnation
	most := -1
	for i := range families {
		chain, segments := chainFrom(families, i)
		if segments > most || segments == most && chain[0].number > best[0].number {
			best, most = chain, segments
		}
	}
	a.lives = best
	for _, t := range a.trails {
		for first, h := range maps.All(t.headers) {
			if !slices.ContainsFunc(best, func(i incarnation) bool { return i.equal(&h.incarnation) }) {
				a.disown(t, first)
			}
		}
	}
	for _, t := range a.trails {
		for _, h := range t.headers {
			a.claim(h.seals)
			a.proven[t.stream] = max(a.proven[t.stream], h.prevEnd)
		}
	}
}

func (a *Archive) disown(t *trail, first Position) {
	var file *fault.File
	if errors.As(t.foreign(first), &file) {
		a.flaws = append(a.flaws, file)
	}
	delete(t.headers, first)
	t.firsts = slices.DeleteFunc(t.firsts, func(p Position) bool { return p == first })
}

// families lists the incarnations, the newest and largest first.
func (a *Archive) families() (list []family) {
	for _, t := range a.trails {
		for _, h := range t.headers {
			i := slices.IndexFunc(list, func(f family) bool { return f.equal(&h.incarnation) })
			if i < 0 {
				i = len(list)
				list = append(list, family{incarnation: h.incarnation})
			}
			list[i].segments++
		}
	}
	slices.SortFunc(list, func(x, y family) int {
		return cmp.Or(cmp.Compare(y.number, x.number), cmp.Compare(y.segments, x.segments), cmp.Compare(y.salt, x.salt))
	})
	return list
}

// chainFrom goes from one incarnation back to older ones.
func chainFrom(families []family, from int) (chain []incarnation, segments int) {
	last := families[from]
	chain, segments = []incarnation{last.incarnation}, last.segments
	for _, f := range families[from+1:] {
		if f.number == last.number || f.number == last.number-1 && f.salt != last.prevSalt {
			continue
		}
		chain, segments, last = append(chain, f.incarnation), segments+f.segments, f
	}
	return chain, segments
}

func (a *Archive) claim(ends []Position) {
	for s, end := range ends {
		a.proven[s] = max(a.proven[s], end)
	}
}

// lifeEnd is where the data of an incarnation ended in a stream, as a newer one
// says; what lies behind was dropped by a recovery.
func (a *Archive) lifeEnd(stream int, incarnation uint64) Position {
	end := MaxPosition
	for _, i := range a.lives {
		if i.number > incarnation {
			end = min(end, i.seals[stream])
		}
	}
	return end
}

// ReadAt reads and verifies the record at an address. It points into the returned
// buffer.
func (a *Archive) ReadAt(address Address, buf []byte) (Record, []byte, error) {
	if !address.IsValid() || address.Stream() >= len(a.trails) {
		return Record{}, buf, fmt.Errorf("%w: %v is not in the log", fault.ErrCorrupt, address)
	}
	t, p := a.trails[address.Stream()], address.Position()
	size := address.SizeBound()
	if size == 0 {
		size = MaxRoundBytes
	}
	buf = slices.Grow(buf[:0], size)[:size]
	n, err := t.readAt(buf, p)
	if err != nil {
		return Record{}, buf, err
	}
	if _, _, f := a.codec.verifyRecord(buf[:n], address.Stream(), p); f != flawNone {
		first := t.segmentOf(p)
		return Record{}, buf, fault.Corrupt(t.path(first), int64(p-first), int64(n), "record at %v: %s", address, f)
	}
	return recordAt(buf[:n]), buf, nil
}
