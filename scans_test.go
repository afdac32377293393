package rekindle_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// note has keys of every kind: a string, and bytes with a number behind them.
type note struct {
	Key  string `rekindle:",pk"`
	Part []byte `rekindle:",unique=part:1"`
	Rank int8   `rekindle:",unique=part:2"`
	Text string
}

// edgeStrings sort where encodings go wrong.
func edgeStrings() []string {
	return []string{"", "\x00", "\x00\x00", "\x00\xff", "\x01", "a", "a\x00", "a\x00b", "a\xff", "a\xff\xff", "ab", "b", "\xfe\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"}
}

func edgeRanks() []int8 { return []int8{math.MinInt8, -1, 0, 1, math.MaxInt8} }

func randomNote(rng *rand.Rand) note {
	text := edgeStrings()
	ranks := edgeRanks()
	return note{text[rng.IntN(len(text))], []byte(text[rng.IntN(len(text))]), ranks[rng.IntN(len(ranks))], fmt.Sprint(rng.IntN(1000))}
}

// scanModel is a table of notes and what it should hold.
type scanModel struct {
	t     *testing.T
	rng   *rand.Rand
	notes *rekindle.Table[note]
	rows  map[string]note
	moved map[string]bool // by key: rows that came to their place in the scanned index since the loop began
}

// TestScansModel compares scans with a model: random bounds, prefixes, limits and
// directions at the edges of key encodings, with what the transaction itself has
// changed, and while it deletes, moves and inserts rows around the place of the
// loop. In a cold database too.
func TestScansModel(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		seed := drawSeed()
		t.Run(fmt.Sprintf("%s, seed %d", strategy, seed), func(t *testing.T) {
			fs := vfs.NewMem()
			m := &scanModel{t: t, rng: rand.New(rand.NewPCG(seed, 3)), rows: map[string]note{}}
			for range 4 {
				db, err := rekindle.Open(t.Context(), "/db", rekindle.Options{IndexStrategy: strategy}.OnFS(fs))
				require.NoError(t, err)
				m.notes, err = rekindle.OpenTable[note](t.Context(), db, "notes")
				require.NoError(t, err)
				for range 25 {
					m.transaction(db)
				}
				_, err = db.CrossCheck(t.Context())
				require.NoError(t, err)
				require.NoError(t, db.Close(t.Context()))
			}
		})
	}
}

func (m *scanModel) transaction(db *rekindle.DB) {
	before := map[string]note{}
	for key, row := range m.rows {
		before[key] = row
	}
	err := db.Update(m.t.Context(), func(tx *rekindle.Tx) error {
		for range 12 {
			m.change(tx, "")
			m.scan(tx)
		}
		if m.rng.IntN(4) == 0 {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		m.rows = before
	} else {
		require.NoError(m.t, err)
	}
}

// change runs a random statement, and notes what it does to a scan of an index.
func (m *scanModel) change(tx *rekindle.Tx, index string) {
	row := randomNote(m.rng)
	old, exists := m.rows[row.Key]
	if m.rng.IntN(3) == 0 {
		err := m.notes.Delete(tx, &row)
		require.Equal(m.t, !exists, errors.Is(err, rekindle.ErrNotFound), "%v", err)
		delete(m.rows, row.Key)
		delete(m.moved, row.Key)
		return
	}
	if m.rng.IntN(3) == 0 && exists {
		row.Part, row.Rank = old.Part, old.Rank
	}
	err := m.notes.Upsert(tx, &row)
	if m.taken(row) {
		require.ErrorIs(m.t, err, rekindle.ErrDuplicateKey)
		return
	}
	require.NoError(m.t, err)
	m.rows[row.Key] = row
	if m.moved != nil && (!exists || index == "part" && (!bytes.Equal(old.Part, row.Part) || old.Rank != row.Rank)) {
		m.moved[row.Key] = true
	}
}

// taken reports whether another row has the key of row in the index.
func (m *scanModel) taken(row note) bool {
	for key, other := range m.rows {
		if key != row.Key && bytes.Equal(other.Part, row.Part) && other.Rank == row.Rank {
			return true
		}
	}
	return false
}

// scan runs a random query, and changes rows on the way in every second one.
func (m *scanModel) scan(tx *rekindle.Tx) {
	q, selects := m.query()
	changing := m.rng.IntN(2) == 0
	want := m.selected(q.Index, q.Reverse, selects)
	m.moved = map[string]bool{}
	met, last := 0, -1
	for row, err := range m.notes.Scan(tx, q) {
		require.NoError(m.t, err, "%+v", q)
		next := m.next(want, last)
		require.Less(m.t, next, len(want), "%+v: %+v is one too many", q, row)
		require.Equal(m.t, m.rows[want[next]], row, "%+v", q)
		last = next
		met++
		if changing {
			m.change(tx, q.Index)
		}
	}
	if q.Limit == 0 || met < q.Limit {
		require.Equal(m.t, len(want), m.next(want, last), "%+v ends early", q)
	}
	m.moved = nil
}

// next is the place of the next row that a loop has to meet.
func (m *scanModel) next(want []string, last int) int {
	for i := last + 1; i < len(want); i++ {
		if _, exists := m.rows[want[i]]; exists && !m.moved[want[i]] {
			return i
		}
	}
	return len(want)
}

// selected lists the keys of the rows that a query selects, in its order.
func (m *scanModel) selected(index string, reverse bool, selects func(note) bool) (keys []string) {
	for key, row := range m.rows {
		if selects(row) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		order := strings.Compare(a, b)
		if x, y := m.rows[a], m.rows[b]; index == "part" {
			order = cmp.Or(bytes.Compare(x.Part, y.Part), cmp.Compare(x.Rank, y.Rank))
		}
		if reverse {
			return -order
		}
		return order
	})
	return keys
}

// query returns a random query and what it means.
func (m *scanModel) query() (rekindle.Query, func(note) bool) {
	text := edgeStrings()
	a, b := text[m.rng.IntN(len(text))], text[m.rng.IntN(len(text))]
	q := rekindle.Query{Reverse: m.rng.IntN(2) == 0, Limit: m.rng.IntN(3) * m.rng.IntN(5)}
	switch m.rng.IntN(5) {
	case 0:
		q.From, q.To = rekindle.Key(a), rekindle.Key(b)
		return q, func(n note) bool { return a <= n.Key && n.Key < b }
	case 1:
		q.Prefix, q.Starting = rekindle.Key(a), true
		return q, func(n note) bool { return strings.HasPrefix(n.Key, a) }
	case 2:
		q.From = rekindle.Key(a)
		return q, func(n note) bool { return a <= n.Key }
	case 3:
		return q, func(note) bool { return true }
	}
	return m.partQuery(q, a)
}

func (m *scanModel) partQuery(q rekindle.Query, part string) (rekindle.Query, func(note) bool) {
	ranks := edgeRanks()
	from, to := ranks[m.rng.IntN(len(ranks))], ranks[m.rng.IntN(len(ranks))]
	q.Index = "part"
	if m.rng.IntN(2) == 0 {
		q.From = rekindle.Key([]byte(part), from)
		return q, func(n note) bool {
			return cmp.Or(bytes.Compare(n.Part, []byte(part)), cmp.Compare(n.Rank, from)) >= 0
		}
	}
	q.Prefix = rekindle.Key([]byte(part))
	q.From, q.To = rekindle.Key(from), rekindle.Key(to)
	return q, func(n note) bool { return string(n.Part) == part && from <= n.Rank && n.Rank < to }
}
