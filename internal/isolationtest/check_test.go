package isolationtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// tx is a committed transaction without a place in time.
func tx(ops ...Op) Tx { return Tx{Ops: ops} }

// at gives a transaction a place in time.
func at(begin, end int64, t Tx) Tx { t.Begin, t.End = begin, end; return t }

func aborted(t Tx) Tx { t.Outcome = Aborted; return t }
func unknown(t Tx) Tx { t.Outcome = Unknown; return t }

// TestEveryClass has the smallest histories of each class, and of what is none.
func TestEveryClass(t *testing.T) {
	const x, y = 1, 2
	for name, c := range map[string]struct {
		txs     []Tx
		class   Class
		ordered bool
	}{
		"appended twice":            {[]Tx{tx(Append(x, 1)), tx(Append(x, 1))}, Malformed, false},
		"read twice":                {[]Tx{tx(Append(x, 1)), tx(Read(x, 1, 1))}, Malformed, false},
		"own append not read":       {[]Tx{tx(Append(x, 1), Read(x))}, Internal, false},
		"own append lost again":     {[]Tx{tx(Read(x), Append(x, 1), Read(x))}, Internal, false},
		"unrepeatable read":         {[]Tx{tx(Append(x, 1)), tx(Read(x), Read(x, 1))}, Internal, false},
		"lists that branch":         {[]Tx{tx(Append(x, 1)), tx(Append(x, 2)), tx(Read(x, 1)), tx(Read(x, 2))}, OrderClash, false},
		"lists in another order":    {[]Tx{tx(Append(x, 1)), tx(Append(x, 2)), tx(Read(x, 1, 2)), tx(Read(x, 2, 1))}, OrderClash, false},
		"cycle of ww":               {[]Tx{tx(Append(x, 1), Append(y, 2)), tx(Append(x, 2), Append(y, 1)), tx(Read(x, 1, 2), Read(y, 1, 2))}, DirtyWrite, false},
		"mixed appends":             {[]Tx{tx(Append(x, 1), Append(x, 3)), tx(Append(x, 2)), tx(Read(x, 1, 2, 3))}, DirtyWrite, false},
		"read of a rollback":        {[]Tx{aborted(tx(Append(x, 1))), tx(Read(x, 1))}, AbortedRead, false},
		"rolled back in the middle": {[]Tx{aborted(tx(Append(x, 1))), tx(Append(x, 2)), tx(Read(x, 1, 2))}, AbortedRead, false},
		"read of nobody's value":    {[]Tx{tx(Read(x, 7))}, AbortedRead, false},
		"intermediate read":         {[]Tx{tx(Append(x, 1), Append(x, 2)), tx(Read(x, 1))}, IntermediateRead, false},
		"each reads the other":      {[]Tx{tx(Append(x, 1), Read(y, 1)), tx(Append(y, 1), Read(x, 1))}, CircularFlow, false},
		"ww one way, wr the other":  {[]Tx{tx(Append(x, 1), Read(y, 1)), tx(Append(x, 2), Append(y, 1)), tx(Read(x, 1, 2))}, CircularFlow, false},
		"half of a transaction":     {[]Tx{tx(Append(x, 1), Append(y, 1)), tx(Read(x, 1), Read(y))}, ReadSkew, false},
		"lost update":               {[]Tx{tx(Read(x), Append(x, 1)), tx(Read(x), Append(x, 2)), tx(Read(x, 1, 2))}, ReadSkew, false},
		"lost update, not read":     {[]Tx{tx(Read(x), Append(x, 1)), tx(Read(x), Append(x, 2)), tx(Read(x, 1))}, ReadSkew, false},
		"long fork":                 {[]Tx{tx(Append(x, 1)), tx(Append(y, 1)), tx(Read(x, 1), Read(y)), tx(Read(x), Read(y, 1))}, LongFork, false},
		"write skew":                {[]Tx{tx(Read(x), Append(y, 1)), tx(Read(y), Append(x, 1)), tx(Read(x, 1), Read(y, 1))}, Skew, false},
		"write skew, not read":      {[]Tx{tx(Read(x), Append(y, 1)), tx(Read(y), Append(x, 1))}, Skew, false},
		// Fekete et al.: the reader makes it one.
		"read-only transaction": {[]Tx{tx(Read(x), Read(y), Append(x, 2)), tx(Read(y), Append(y, 1)), tx(Read(x), Read(y, 1)), tx(Read(x, 2))}, Skew, false},
		"of an unknown one":     {[]Tx{unknown(tx(Append(x, 1), Append(y, 1))), tx(Read(x, 1), Read(y)), tx(Read(y, 1))}, ReadSkew, false},

		"stale read":             {[]Tx{at(1, 2, tx(Append(x, 1))), at(3, 4, tx(Read(x))), at(1, 9, tx(Read(x, 1)))}, ReadSkew, true},
		"stale read, never seen": {[]Tx{at(1, 2, tx(Append(x, 1))), at(3, 4, tx(Read(x)))}, ReadSkew, true},
		"stale session":          {[]Tx{at(1, 2, tx(Read(x, 1))), at(3, 4, tx(Read(x))), at(1, 9, tx(Append(x, 1)))}, ReadSkew, true},
		"read from the future":   {[]Tx{at(1, 2, tx(Read(x, 1))), at(3, 4, tx(Append(x, 1)))}, CircularFlow, true},
		"written into the past":  {[]Tx{at(1, 2, tx(Append(x, 2))), at(3, 4, tx(Append(x, 1))), at(5, 6, tx(Read(x, 1, 2)))}, CircularFlow, true},
		"fork against the time": {[]Tx{
			at(1, 2, tx(Append(x, 1))), at(1, 9, tx(Append(y, 1))), at(3, 4, tx(Read(x), Read(y, 1))),
		}, ReadSkew, true},

		"serial":                 {[]Tx{at(1, 2, tx(Append(x, 1))), at(3, 4, tx(Read(x, 1), Append(x, 2))), at(5, 6, tx(Read(x, 1, 2)))}, classes, false},
		"at the same time":       {[]Tx{at(1, 9, tx(Append(x, 1))), at(3, 4, tx(Read(x))), at(3, 4, tx(Read(x, 1)))}, classes, false},
		"own appends":            {[]Tx{tx(Append(x, 1), Read(x, 1), Append(x, 2), Read(x, 1, 2)), tx(Read(x, 1, 2))}, classes, false},
		"rolled back and unread": {[]Tx{aborted(tx(Append(x, 1), Read(x, 1))), tx(Read(x))}, classes, false},
		"unknown, not there":     {[]Tx{at(1, 2, unknown(tx(Append(x, 1)))), at(3, 4, tx(Read(x))), at(5, 6, tx(Read(x)))}, classes, false},
		"unknown, there late":    {[]Tx{at(1, 2, unknown(tx(Append(x, 1)))), at(3, 4, tx(Read(x))), at(5, 6, tx(Read(x, 1)))}, classes, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(c.txs)
			if c.class == classes {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			require.Equal(t, c.class, found[0].Class, "%v", found)
			require.Equal(t, c.ordered, found[0].Ordered, "%v", found)
			require.Equal(t, c.class == Skew, found[0].Snapshot())
			require.NotEmpty(t, found[0].String())
		})
	}
}

// store is a database of one goroutine that executes transactions step by step,
// with snapshots if it is told so, else serially.
type store struct {
	rng     *rand.Rand
	commits []map[int64][]int64 // the whole state after each
	next    int64
	clock   int64
}

type client struct {
	tx       Tx
	snapshot int
	own      map[int64][]int64
	steps    int
}

func (s *store) begin() *client {
	s.clock++
	return &client{tx: Tx{Begin: s.clock}, snapshot: len(s.commits) - 1, own: map[int64][]int64{}, steps: 1 + s.rng.IntN(4)}
}

func (s *store) step(c *client) {
	c.steps--
	key := s.rng.Int64N(6)
	if s.rng.IntN(2) == 0 {
		s.next++
		c.own[key] = append(c.own[key], s.next)
		c.tx.Ops = append(c.tx.Ops, Append(key, s.next))
		return
	}
	list := append(append([]int64(nil), s.commits[c.snapshot][key]...), c.own[key]...)
	c.tx.Ops = append(c.tx.Ops, Read(key, list...))
}

// end commits a transaction unless another one has appended to a key since its
// snapshot.
func (s *store) end(c *client) Tx {
	s.clock++
	c.tx.End = s.clock
	last := s.commits[len(s.commits)-1]
	for key := range c.own {
		if len(last[key]) != len(s.commits[c.snapshot][key]) {
			c.tx.Outcome = Aborted
			return c.tx
		}
	}
	state := map[int64][]int64{}
	for key, list := range last {
		state[key] = list
	}
	for key, own := range c.own {
		state[key] = append(append([]int64(nil), last[key]...), own...)
	}
	s.commits = append(s.commits, state)
	return c.tx
}

func (s *store) run(clients, transactions int) (txs []Tx) {
	var open []*client
	for len(txs) < transactions {
		if len(open) < clients {
			open = append(open, s.begin())
			continue
		}
		i := s.rng.IntN(len(open))
		if c := open[i]; c.steps > 0 {
			s.step(c)
		} else {
			txs = append(txs, s.end(c))
			open = append(open[:i], open[i+1:]...)
		}
	}
	return txs
}

// TestSimulatedStores: a store with one client is serial, one with snapshots has
// skews at most, and each fault of it is found.
func TestSimulatedStores(t *testing.T) {
	skews := 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		fresh := func() *store { return &store{rng: rng, commits: []map[int64][]int64{{}}} }
		require.Empty(t, Check(fresh().run(1, 300)), "seed %d", seed)
		txs := fresh().run(8, 300)
		for _, a := range Check(txs) {
			require.True(t, a.Snapshot(), "seed %d: %v", seed, a)
			skews++
		}
		for name, harm := range harms() {
			harmed := append([]Tx(nil), txs...)
			require.True(t, harm(rng, harmed), name)
			require.NotEmpty(t, forbiddenOnes(Check(harmed)), "seed %d: %s", seed, name)
		}
	}
	require.NotZero(t, skews)
	t.Logf("%d skews", skews)
}

func forbiddenOnes(all []Anomaly) (found []Anomaly) {
	for _, a := range all {
		if !a.Snapshot() {
			found = append(found, a)
		}
	}
	return found
}

// harms change a history so that it can no longer be one of snapshots.
func harms() map[string]func(rng *rand.Rand, txs []Tx) bool {
	return map[string]func(rng *rand.Rand, txs []Tx) bool{
		"a commit taken back": func(rng *rand.Rand, txs []Tx) bool {
			return change(rng, txs, func(i int) bool {
				if txs[i].Outcome != Committed || !observed(txs, i) {
					return false
				}
				txs[i].Outcome = Aborted
				return true
			})
		},
		"a value lost from a list": func(rng *rand.Rand, txs []Tx) bool {
			return change(rng, txs, func(i int) bool {
				for k, o := range txs[i].Ops {
					if txs[i].Outcome == Committed && len(o.List) > 1 {
						ops := append([]Op(nil), txs[i].Ops...)
						ops[k].List = o.List[1:]
						txs[i].Ops = ops
						return true
					}
				}
				return false
			})
		},
		"a transaction that began much later": func(rng *rand.Rand, txs []Tx) bool {
			return change(rng, txs, func(i int) bool {
				if i > len(txs)/2 || txs[i].Outcome != Committed || len(txs[i].Ops) == 0 || !observed(txs, i) {
					return false
				}
				txs[i].Begin, txs[i].End = 1<<40, 1<<40+1
				return true
			})
		},
	}
}

// change tries transactions until one can be changed.
func change(rng *rand.Rand, txs []Tx, try func(i int) bool) bool {
	for _, i := range rng.Perm(len(txs)) {
		if try(i) {
			return true
		}
	}
	return false
}

// observed reports whether another committed transaction has read a value of this
// one.
func observed(txs []Tx, i int) bool {
	own := map[int64]bool{}
	for _, o := range txs[i].Ops {
		own[o.Append] = o.Append != 0
	}
	for k, t := range txs {
		for _, o := range t.Ops {
			for _, v := range o.List {
				if own[v] && k != i && t.Outcome == Committed {
					return true
				}
			}
		}
	}
	return false
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := &store{rng: rand.New(rand.NewPCG(1, 1)), commits: []map[int64][]int64{{}}}
			txs := s.run(8, n)
			for b.Loop() {
				Check(txs)
			}
		})
	}
}
