package btree

// item is a decoded entry.
type item struct {
	start, size int32  // its whole key in items.keys
	row         uint64 // row of a leaf entry; of a separator, 0 = none
	val         uint64 // what the node's value array holds: row or child word
	long        uint64 // child word of the overflow chain; 0 = inline
}

// items is a run of entries in ascending order, taken out of nodes in order to
// be laid out anew. It is working memory, reused.
type items struct {
	keys []byte
	list []item

	prefixBefore int // the shortest prefix of the nodes that were loaded
}

func (it *items) reset() {
	it.keys = it.keys[:0]
	it.list = it.list[:0]
	it.prefixBefore = maxPrefix
}

func (it *items) len() int { return len(it.list) }

func (it *items) key(i int) []byte {
	e := &it.list[i]
	return it.keys[e.start : e.start+e.size]
}

// extend appends an entry for bytes of it.keys. Its other fields are set in
// place by the caller: to copy an item that was just put together stalls on the
// stores.
func (it *items) extend(start, size int) *item {
	n := len(it.list)
	if n == cap(it.list) {
		it.list = append(it.list, item{})[:n]
	}
	it.list = it.list[:n+1]
	e := &it.list[n]
	e.start, e.size = int32(start), int32(size)
	return e
}

// add appends an entry.
func (it *items) add(key []byte, e *item) {
	start := len(it.keys)
	it.keys = append(it.keys, key...)
	d := it.extend(start, len(key))
	d.row, d.val, d.long = e.row, e.val, e.long
}

// insert puts an entry at place i.
func (it *items) insert(i int, key []byte, e *item) {
	it.add(key, e)
	last := it.list[it.len()-1]
	copy(it.list[i+1:], it.list[i:])
	it.list[i] = last
}

func (it *items) remove(i int) { it.list = append(it.list[:i], it.list[i+1:]...) }

// load appends the entries of a latched node.
func (t *Tree) load(it *items, g *guard) error {
	it.prefixBefore = min(it.prefixBefore, g.meta().prefix())
	for i := range g.meta().count() {
		if err := t.loadEntry(it, g, i); err != nil {
			return err
		}
	}
	return nil
}

// loadEntry appends entry i of a latched node.
func (t *Tree) loadEntry(it *items, g *guard, i int) (err error) {
	m, start := g.meta(), len(it.keys)
	if it.keys, err = t.appendKey(it.keys, g, m, i); err != nil {
		return err
	}
	e := it.extend(start, len(it.keys)-start)
	e.val = g.index(m.vals(), i)
	e.row, e.long = e.val, 0
	if m.level() > 0 {
		e.row = 0
	}
	if m.isSlotted() {
		e.row = g.entryRow(m, i, g.slot(m, i))
		e.long = g.longWord(m, i)
	}
	return nil
}

// shape is how a run of entries is laid out in a node.
type shape struct {
	level  int
	prefix int
	length int // of all keys behind the prefix, or slotted
	words  int // of heap
	size   int // bytes taken, header included
}

// measure returns the shape of the entries [from, to) at a level, with their
// longest common prefix if they fit with it. A prefix takes space too, which
// keys that are short or out of line do not give back; then the one that they
// had before is the measure.
func (it *items) measure(level, from, to int) shape {
	longest := it.prefix(from, to)
	s := it.shape(level, from, to, longest)
	if s.fits() || it.prefixBefore >= longest {
		return s
	}
	if before := it.shape(level, from, to, it.prefixBefore); before.fits() {
		return before
	}
	return s
}

func (it *items) shape(level, from, to, prefix int) shape {
	s := shape{level: level, prefix: prefix, size: headerSize}
	if from == to {
		return s
	}
	s.length = int(it.list[from].size) - prefix
	for i := from; i < to; i++ {
		e := &it.list[i]
		rest := int(e.size) - prefix
		if rest > 8 || rest != s.length || e.hasRow(level) || e.long != 0 {
			s.length = slotted
		}
		s.words += e.words(level, rest)
	}
	s.size += (prefix+7)&^7 + 16*(to-from)
	if s.length == slotted {
		s.size += (4*(to-from)+7)&^7 + 8*s.words
	}
	return s
}

// prefix returns the length of the prefix to factor out of [from, to). A
// single key has none, so that the next one is likely to fit in.
func (it *items) prefix(from, to int) int {
	if to-from < 2 {
		return 0
	}
	return min(commonPrefix(it.key(from), it.key(to-1)), maxPrefix)
}

func (e *item) hasRow(level int) bool { return level > 0 && e.row != 0 }

// words is the number of heap words of the entry, if it has a slot.
func (e *item) words(level, rest int) int {
	words := 1
	if e.long == 0 {
		words = restWords(rest)
	}
	if e.hasRow(level) {
		words++
	}
	return words
}

// fits says whether a node takes the shape.
func (s *shape) fits() bool { return s.size <= NodeSize }

// room returns how many entries the arrays of a node of count entries get, so
// that entries to come, if they are like those, use up arrays and heap at the
// same time.
func (s *shape) room(count int) int {
	space := NodeSize - headerSize - (s.prefix+7)&^7
	if s.length != slotted {
		return space / 16
	}
	each := 20*count + 8*s.words
	room := space * count / max(each, 1)
	for room > count && (20*room+7)&^7 > space-8*s.words {
		room--
	}
	return max(room, count)
}

// write lays the entries [from, to) out in a latched node. Header fields but
// the link stay as they are.
func (n node) write(it *items, s *shape, from, to int, link uint64) {
	count := to - from
	room := s.room(count)
	m := makeMeta(s.level, count, room, s.prefix, nodeWords, s.length)
	n.setLink(link)
	if count > 0 {
		n.writePrefix(it.key(from), s.prefix)
	}
	heads, vals := m.heads(), m.vals()
	for i := range count {
		e := &it.list[from+i]
		key := it.keys[e.start : e.start+e.size]
		n.setIndex(heads, i, headAt(key, s.prefix))
		n.setIndex(vals, i, e.val)
		if s.length == slotted {
			m = n.writeRest(m, i, key, e)
		}
	}
	n.setMeta(m)
}

func (n node) writePrefix(key []byte, prefix int) {
	for at := 0; at < prefix; at += 8 {
		n.setWord(headerSize+uintptr(at), headAt(key, at)&topBytes(prefix-at))
	}
}

// writeRest takes heap for what the key has behind its head, and sets slot i.
func (n node) writeRest(m meta, i int, key []byte, e *item) meta {
	rest := len(key) - m.prefix()
	words := e.words(m.level(), rest)
	at := m.heap() - words
	s := makeSlot(at, rest)
	if e.long != 0 {
		s |= slotLong
		n.setWord(uintptr(at)*8, e.long)
	} else {
		for w := range restWords(rest) {
			n.setWord(uintptr(at+w)*8, headAt(key, m.prefix()+8+8*w))
		}
	}
	if e.hasRow(m.level()) {
		s |= slotRow
		n.setWord(uintptr(at+words-1)*8, e.row)
	}
	n.setSlot(m, i, s)
	return m.withHeap(at)
}

// rewrite gives a latched node the entries [from, to) in the layout that suits
// them.
func (n node) rewrite(it *items, level, from, to int, link uint64) {
	s := it.measure(level, from, to)
	n.write(it, &s, from, to, link)
}

// cut returns where to split the entries of a node that has become too full,
// with the entry at place i the new one: in the middle, measured in bytes, or
// as near to it as both halves fit. At the right edge of the tree the new entry
// goes alone, so that ascending keys leave full nodes behind. False, if there is
// no such place, can only come of evening out two nodes.
func (it *items) cut(level, i int, rightmost bool) (int, bool) {
	up := min(level, 1) // of an inner node the entry at the cut goes up
	last := it.len() - 1 - up
	if rightmost && i == it.len()-1 && it.fitsCut(level, last, up) {
		return last, true
	}
	middle := it.middle(level)
	for d := 0; d <= last; d++ {
		for _, c := range [...]int{middle - d, middle + d} {
			if c >= 1 && c <= last && it.fitsCut(level, c, up) {
				return c, true
			}
		}
	}
	return 0, false
}

func (it *items) fitsCut(level, cut, up int) bool {
	left, right := it.measure(level, 0, cut), it.measure(level, cut+up, it.len())
	return left.fits() && right.fits()
}

// middle returns the place before which half of the bytes are.
func (it *items) middle(level int) int {
	total := 0
	for i := range it.list {
		total += it.list[i].weight(level)
	}
	sum, i := 0, 0
	for ; 2*sum < total; i++ {
		sum += it.list[i].weight(level)
	}
	return i
}

// weight is about what the entry takes in a node, in words.
func (e *item) weight(level int) int { return 2 + e.words(level, int(e.size)) }
