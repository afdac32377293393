package isolationtest

import (
	"fmt"
	"slices"
	"strings"
)

// kind is a kind of dependency.
type kind uint8

const (
	ww kind = iota
	wr
	rw
	after // in time
	kinds
)

func (k kind) String() string { return [kinds]string{"ww", "wr", "rw", "after"}[k] }

// edge is a dependency of another transaction on the one that has it.
type edge struct {
	kind kind
	to   int
}

// graph has transactions as nodes.
type graph struct{ edges [][]edge }

func newGraph(n int) *graph { return &graph{make([][]edge, n)} }

func (g *graph) add(k kind, from, to int) {
	if e := (edge{k, to}); from != to && !slices.Contains(g.edges[from], e) {
		g.edges[from] = append(g.edges[from], e)
	}
}

// pattern describes the cycles of one class: they have an edge of kind first, and
// behind it any ww, and what else is said.
type pattern struct {
	class Class
	first kind
	wr    bool
	after bool
	rw    bool // more of them
	apart bool // but no two rw next to each other
}

// forbidden are the patterns without two rw next to each other, the worst first.
func forbidden(ordered bool) []pattern {
	if ordered {
		return []pattern{
			{class: CircularFlow, first: after, wr: true, after: true},
			{class: ReadSkew, first: rw, wr: true, after: true},
			{class: LongFork, first: rw, wr: true, after: true, rw: true, apart: true},
		}
	}
	return []pattern{
		{class: DirtyWrite, first: ww},
		{class: CircularFlow, first: wr, wr: true},
		{class: ReadSkew, first: rw, wr: true},
		{class: LongFork, first: rw, wr: true, rw: true, apart: true},
	}
}

// allows reports whether an edge may follow one that is, or is not, an rw.
func (p *pattern) allows(k kind, afterRW bool) bool {
	switch k {
	case wr:
		return p.wr
	case after:
		return p.after
	case rw:
		return p.rw && !(p.apart && afterRW)
	}
	return true
}

// place is a node of a search: a transaction, and whether it was come to by an rw.
// A cycle of places has no two rw next to each other if no way leads on by an rw
// from where one has led to.
type place struct {
	tx int
	rw bool
}

// checkCycles reports, for each set of transactions that depend on each other, a
// short cycle of the worst class. The order of time may be part of it only with
// ordered, and what was found without it is not reported again.
func (h *history) checkCycles(g *graph, ordered bool) {
	cyclic := map[int]bool{}
	for _, set := range g.components(pattern{wr: true, after: ordered, rw: true, apart: true}) {
		for _, p := range forbidden(ordered) {
			if cycle := g.cycle(p, set); cycle != nil {
				h.reportCycle(p.class, ordered, cycle)
				break
			}
		}
		for tx := range set {
			cyclic[tx] = true
		}
	}
	skew := pattern{class: Skew, first: rw, wr: true, after: ordered, rw: true}
	for _, set := range g.components(skew) {
		if cycle := g.cycle(skew, set); cycle != nil && !slices.ContainsFunc(cycle, func(s step) bool { return cyclic[s.from] }) {
			h.reportCycle(Skew, ordered, cycle)
		}
	}
}

func (h *history) reportCycle(c Class, ordered bool, cycle []step) {
	if ordered && !slices.ContainsFunc(cycle, func(s step) bool { return s.kind == after }) {
		return // has been reported without it
	}
	var b strings.Builder
	var txs []int
	for _, s := range cycle {
		txs = append(txs, s.from)
		fmt.Fprintf(&b, "%v -%v-> ", h.txs[s.from].Ops, s.kind)
	}
	b.WriteString("the first")
	h.found = append(h.found, Anomaly{c, ordered, txs, b.String()})
}

// step is an edge of a cycle.
type step struct {
	from int
	kind kind
}

// searches bounds from how many edges cycles of a pattern are looked for.
const searches = 300

// cycle returns a cycle of a pattern within a set, nil if there is none.
func (g *graph) cycle(p pattern, set map[int]bool) (best []step) {
	searched := 0
	for from := range set {
		for _, e := range g.edges[from] {
			if e.kind != p.first || !set[e.to] || best != nil && searched > searches {
				continue
			}
			searched++
			if cycle := g.back(p, from, e, set); cycle != nil && (best == nil || len(cycle) < len(best)) {
				best = cycle
			}
		}
	}
	return best
}

// came says how a search came to a place.
type came struct {
	from place
	by   kind
}

// back searches for the shortest way from the end of an edge to its beginning.
func (g *graph) back(p pattern, from int, first edge, set map[int]bool) []step {
	start := place{first.to, first.kind == rw}
	ways := map[place]came{start: {}}
	for queue := []place{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at.tx == from && !(p.apart && at.rw) {
			return append([]step{{from, first.kind}}, way(ways, start, at)...)
		}
		for _, e := range g.edges[at.tx] {
			next := place{e.to, e.kind == rw}
			if _, seen := ways[next]; !seen && set[e.to] && p.allows(e.kind, at.rw) {
				ways[next] = came{at, e.kind}
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func way(ways map[place]came, start, end place) (steps []step) {
	for at := end; at != start; at = ways[at].from {
		steps = append(steps, step{ways[at].from.tx, ways[at].by})
	}
	slices.Reverse(steps)
	return steps
}

// components returns the sets of more than one transaction that reach each other
// by ways that a pattern allows.
func (g *graph) components(p pattern) []map[int]bool {
	n := 2 * len(g.edges)
	t := tarjan{g: g, p: p, index: make([]int, n), low: make([]int, n), on: make([]bool, n)}
	for node := range n {
		if t.index[node] == 0 {
			t.visit(node)
		}
	}
	return t.sets
}

// tarjan is the state of his algorithm over places, numbered 2 × transaction + rw;
// without recursion, because histories are long.
type tarjan struct {
	g     *graph
	p     pattern
	index []int
	low   []int
	on    []bool
	stack []int
	count int
	sets  []map[int]bool
}

func (t *tarjan) visit(root int) {
	type frame struct{ node, next int }
	frames := []frame{{root, 0}}
	t.open(root)
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if edges := t.g.edges[f.node/2]; f.next < len(edges) {
			e := edges[f.next]
			f.next++
			if !t.p.allows(e.kind, f.node%2 == 1) {
				continue
			}
			to := 2 * e.to
			if e.kind == rw {
				to++
			}
			if t.index[to] == 0 {
				t.open(to)
				frames = append(frames, frame{to, 0})
			} else if t.on[to] {
				t.low[f.node] = min(t.low[f.node], t.index[to])
			}
			continue
		}
		node := f.node
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			parent := frames[len(frames)-1].node
			t.low[parent] = min(t.low[parent], t.low[node])
		}
		t.close(node)
	}
}

func (t *tarjan) open(n int) {
	t.count++
	t.index[n], t.low[n] = t.count, t.count
	t.stack = append(t.stack, n)
	t.on[n] = true
}

// close takes the set of a node off the stack if it is the first one of it.
func (t *tarjan) close(n int) {
	if t.low[n] != t.index[n] {
		return
	}
	set := map[int]bool{}
	for last := -1; last != n; {
		last = t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.on[last] = false
		set[last/2] = true
	}
	if len(set) > 1 {
		t.sets = append(t.sets, set)
	}
}
