package chainindex

import (
	"bytes"
	"cmp"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// merge goes through the entries of several layers in order, each row of a key
// once, as the newest layer that has it says. It reads batches ahead; what it
// holds of a layer is as old as the batch.
type merge struct {
	h       *epoch.Handle
	pins    bool // h has to be pinned for each batch
	rng     index.Range
	want    int      // size of a full batch
	sources []source // newest first
	first   *source  // the one whose entry is next; nil: not known
	second  *source  // the next one among the others; nil: there is none

	key     []byte // of the entry that next has delivered
	ordinal uint64
}

// source is one layer of a merge.
type source struct {
	layer  *layer
	cursor index.Cursor
	batch  index.Batch
	at     int
	more   bool // the layer may have entries behind the batch
	done   bool

	key   []byte // of the entry it stands on
	place rowid.ID
}

// bulkFill is the batch size of merges that go through whole layers.
const bulkFill = 512

// beginBulk begins a merge of whole layers, which its owner holds, with a handle
// that it pins for a batch at a time.
func (m *merge) beginBulk(h *epoch.Handle, layers []*layer) error {
	m.pins = true
	return m.begin(h, layers, index.Range{}, &index.Cursor{}, bulkFill)
}

// begin stands before the first entry of a range behind a cursor. Of want
// entries each layer is asked for its share, then for full batches.
func (m *merge) begin(h *epoch.Handle, layers []*layer, r index.Range, c *index.Cursor, want int) error {
	m.h, m.rng, m.want, m.first, m.second = h, r, want, nil, nil
	for len(m.sources) < len(layers) {
		m.sources = append(m.sources, source{})
	}
	m.sources = m.sources[:len(layers)]
	total := int64(1)
	for _, l := range layers {
		total += l.size()
	}
	for i, l := range layers {
		s := &m.sources[i]
		s.layer, s.at, s.more, s.done = l, 0, true, false
		s.start(c, r.Reverse, min(want, 4+int(int64(want)*l.size()/total)))
		if err := m.load(s); err != nil {
			return err
		}
	}
	return nil
}

// start puts the source behind an entry and its tombstone.
func (s *source) start(c *index.Cursor, reverse bool, fill int) {
	s.batch.Reset()
	s.batch.First, s.batch.Max = fill, fill
	s.cursor.Reset()
	if c.Started() {
		key, row := c.Entry()
		s.cursor.Set(key, placeBehind(row, reverse))
	}
}

// placeBehind is the last place of a row in the direction of a scan.
func placeBehind(row rowid.ID, reverse bool) rowid.ID {
	if reverse {
		return livePlace(row.Ordinal())
	}
	return deadPlace(row.Ordinal())
}

// load makes the source stand on its next entry.
func (m *merge) load(s *source) error {
	for s.at == s.batch.Len() {
		if !s.more {
			s.done = true
			return nil
		}
		if err := m.fill(s); err != nil {
			return err
		}
		s.at, s.batch.Max = 0, m.want
	}
	s.key, s.place = s.batch.Key(s.at), s.batch.Row(s.at)
	return nil
}

func (m *merge) fill(s *source) (err error) {
	if m.pins {
		m.h.Pin()
		defer m.h.Unpin()
	}
	s.more, err = s.layer.scan(m.h, m.rng, &s.cursor, &s.batch)
	return err
}

func (m *merge) step(s *source) error {
	s.at++
	return m.load(s)
}

func (s *source) ordinal() uint64 { return placeOrdinal(s.place) }

// compare orders the entries that two sources stand on, in the direction of
// the merge. An entry and its tombstone are equal.
func (m *merge) compare(a, b *source) int {
	d := bytes.Compare(a.key, b.key)
	if d == 0 {
		d = cmp.Compare(a.ordinal(), b.ordinal())
	}
	if m.rng.Reverse {
		return -d
	}
	return d
}

// rank finds the two sources that are next. Of equal ones the newest is first.
func (m *merge) rank() {
	m.first, m.second = nil, nil
	for i := range m.sources {
		s := &m.sources[i]
		switch {
		case s.done:
		case m.first == nil:
			m.first = s
		case m.compare(s, m.first) < 0:
			m.first, m.second = s, m.first
		case m.second == nil || m.compare(s, m.second) < 0:
			m.second = s
		}
	}
}

// next delivers the next entry in m.key and m.ordinal: live, or one that was
// removed. It returns false for ok at the end.
func (m *merge) next() (live, ok bool, err error) {
	if m.first == nil {
		if m.rank(); m.first == nil {
			return false, false, nil
		}
	}
	s := m.first
	m.key, m.ordinal = append(m.key[:0], s.key...), s.ordinal()
	shared := m.second != nil && m.compare(s, m.second) == 0
	if live, err = m.take(s); err != nil {
		return false, false, err
	}
	if shared {
		err = m.skip()
	}
	if shared || s.done || m.second != nil && m.compare(s, m.second) >= 0 {
		m.first = nil
	}
	return live, true, err
}

// take goes past the entry and its tombstone in a source that stands on one
// of them.
func (m *merge) take(s *source) (live bool, err error) {
	for err == nil && m.standsOn(s) {
		live = live || !isTombstone(s.place)
		err = m.step(s)
	}
	return live, err
}

func (m *merge) standsOn(s *source) bool {
	return !s.done && s.ordinal() == m.ordinal && bytes.Equal(s.key, m.key)
}

// skip goes past the entry in all sources.
func (m *merge) skip() error {
	for i := range m.sources {
		if _, err := m.take(&m.sources[i]); err != nil {
			return err
		}
	}
	return nil
}

// letGo forgets the layers and keeps the buffers.
func (m *merge) letGo() {
	for i := range m.sources {
		m.sources[i].layer = nil
	}
	m.h, m.rng, m.first, m.second = nil, index.Range{}, nil, nil
}
