package isolationtest

import (
	"cmp"
	"slices"
)

// Check returns the anomalies of a history, of cycles at most one of each class
// for each strongly connected set of transactions.
func Check(txs []Tx) []Anomaly {
	h := newHistory(txs)
	for i := range txs {
		if txs[i].Outcome == Committed {
			h.checkInternal(i)
			h.checkReads(i)
		}
	}
	for key, order := range h.orders {
		h.checkMixed(key, order)
	}
	g := h.dependencies()
	h.checkCycles(g, false)
	h.addOrder(g)
	h.checkCycles(g, true)
	slices.SortStableFunc(h.found, func(a, b Anomaly) int { return int(a.Class) - int(b.Class) })
	return h.found
}

// checkInternal compares each read with what the transaction knows of the list.
func (h *history) checkInternal(tx int) {
	read := map[int64][]int64{}     // the list as it was last read or has become since
	appended := map[int64][]int64{} // before the first read
	for _, o := range h.txs[tx].Ops {
		known, is := read[o.Key]
		switch {
		case o.Append != 0 && is:
			read[o.Key] = append(slices.Clone(known), o.Append)
		case o.Append != 0:
			appended[o.Key] = append(appended[o.Key], o.Append)
		case is && !slices.Equal(known, o.List), !is && !endsWith(o.List, appended[o.Key]):
			h.report(Internal, []int{tx}, "%v, but %v and %v are known", o, known, appended[o.Key])
		default:
			read[o.Key] = o.List
		}
	}
}

func endsWith(list, end []int64) bool {
	return len(list) >= len(end) && slices.Equal(list[len(list)-len(end):], end)
}

// foreign is the part of a list that a read of tx returned which others appended.
func (h *history) foreign(tx int, o Op) []int64 {
	n := len(o.List)
	for n > 0 && h.writers[version{o.Key, o.List[n-1]}].tx == tx && h.known(o.Key, o.List[n-1]) {
		n--
	}
	return o.List[:n]
}

func (h *history) known(key, value int64) bool {
	_, is := h.writers[version{key, value}]
	return is
}

func (h *history) checkReads(tx int) {
	for _, o := range h.txs[tx].Ops {
		if o.Append != 0 {
			continue
		}
		if order := h.orders[o.Key]; !slices.Equal(order[:len(o.List)], o.List) {
			h.report(OrderClash, []int{tx}, "%v, another read has %v", o, order)
		}
		for i, value := range o.List {
			if slices.Contains(o.List[:i], value) {
				h.report(Malformed, []int{tx}, "%v: %d twice", o, value)
			}
			w, is := h.writers[version{o.Key, value}]
			switch {
			case !is:
				h.report(AbortedRead, []int{tx}, "%v: nobody has appended %d", o, value)
			case h.txs[w.tx].Outcome == Aborted && w.tx != tx:
				h.report(AbortedRead, []int{w.tx, tx}, "%v: %d was rolled back", o, value)
			}
		}
		list := h.foreign(tx, o)
		if len(list) == 0 {
			continue
		}
		if w, is := h.writers[version{o.Key, list[len(list)-1]}]; is && !w.last {
			h.report(IntermediateRead, []int{w.tx, tx}, "%v", o)
		}
	}
}

// checkMixed finds appends of one transaction with others' between them.
func (h *history) checkMixed(key int64, order []int64) {
	for i, value := range order[:max(0, len(order)-1)] {
		w, next := h.writers[version{key, value}], h.writers[version{key, order[i+1]}]
		if h.known(key, value) && h.known(key, order[i+1]) && !w.last && w.tx != next.tx {
			h.report(DirtyWrite, []int{w.tx, next.tx}, "key %d: %v", key, order)
		}
	}
}

// dependencies makes the graph of the committed transactions and of those others
// whose appends were read.
func (h *history) dependencies() *graph {
	g := newGraph(len(h.txs))
	for key, order := range h.orders {
		for i := 1; i < len(order); i++ {
			h.link(g, ww, h.writers[version{key, order[i-1]}].tx, version{key, order[i]})
		}
		if len(order) > 0 {
			h.linkUnseen(g, ww, h.writers[version{key, order[len(order)-1]}].tx, key)
		}
	}
	for tx := range h.txs {
		if h.txs[tx].Outcome == Committed {
			h.linkReads(g, tx)
		}
	}
	return g
}

// link adds an edge from a transaction to the writer of a version.
func (h *history) link(g *graph, k kind, from int, v version) {
	if w, is := h.writers[v]; is {
		g.add(k, from, w.tx)
	}
}

// linkUnseen adds edges to the committed writers of a key whose values nobody has
// read.
func (h *history) linkUnseen(g *graph, k kind, from int, key int64) {
	for _, tx := range h.unseen[key] {
		g.add(k, from, tx)
	}
}

func (h *history) linkReads(g *graph, tx int) {
	for _, o := range h.txs[tx].Ops {
		if o.Append != 0 {
			continue
		}
		list, order := h.foreign(tx, o), h.orders[o.Key]
		if n := len(list); n > 0 && h.known(o.Key, list[n-1]) {
			g.add(wr, h.writers[version{o.Key, list[n-1]}].tx, tx)
		}
		n := len(list)
		for n < len(order) && h.writers[version{o.Key, order[n]}].tx == tx {
			n++ // its own append: whoever comes after that has a ww from it
		}
		if n < len(order) {
			if n == len(list) {
				h.link(g, rw, tx, version{o.Key, order[n]})
			}
		} else {
			h.linkUnseen(g, rw, tx, o.Key)
		}
	}
}

// addOrder adds an edge from each committed transaction to those that began after
// its end, but for those that follow from others.
func (h *history) addOrder(g *graph) {
	var begins, ends []int
	for i, tx := range h.txs {
		if tx.Begin == tx.End || tx.Outcome == Aborted {
			continue
		}
		begins = append(begins, i)
		if tx.Outcome == Committed {
			ends = append(ends, i)
		}
	}
	slices.SortFunc(begins, func(a, b int) int { return cmp.Compare(h.txs[a].Begin, h.txs[b].Begin) })
	slices.SortFunc(ends, func(a, b int) int { return cmp.Compare(h.txs[a].End, h.txs[b].End) })
	var newest []int // ended, and not followed by one that began later and ended too
	for _, b := range begins {
		for len(ends) > 0 && h.txs[ends[0]].End < h.txs[b].Begin {
			e := ends[0]
			ends = ends[1:]
			newest = append(slices.DeleteFunc(newest, func(x int) bool { return h.txs[x].End < h.txs[e].Begin }), e)
		}
		for _, e := range newest {
			g.add(after, e, b)
		}
	}
}
