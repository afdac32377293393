package arena

// roomList lists the chunks of a kind by their longest free run.
type roomList struct {
	heads  [pagesPerChunk]uint32 // chunk number + 1
	filled pageSet               // lengths from 1 on whose list has a chunk
}

// find returns the chunk with the shortest run of at least n pages.
func (l *roomList) find(n int) (Ref, bool) {
	length := l.filled.next(n)
	if length == pagesPerChunk {
		return 0, false
	}
	return chunkRef(l.heads[length] - 1), true
}

// vacant reports whether the chunk could be given back.
func (c *chunkRecord) vacant() bool { return c.longest == pagesPerChunk-1 && c.kind == passing }

// convert changes the kind of a chunk that is in its list, or in none.
func (h *heap) convert(chunk Ref, c *chunkRecord, k kind) {
	length := c.longest
	h.unlink(c)
	c.kind, c.longest = k, length
	h.link(uint32(chunk>>chunkShift)+1, c)
}

// relist moves a chunk whose set of free pages has changed to its list.
func (h *heap) relist(chunk Ref, c *chunkRecord) {
	inRuns := uint32(c.free.inRuns())
	h.runs += int(inRuns) - int(c.inRuns)
	c.inRuns = inRuns
	longest := uint32(c.free.longest())
	if longest == c.longest {
		return
	}
	h.unlink(c)
	c.longest = longest
	h.link(uint32(chunk>>chunkShift)+1, c)
}

// link puts the chunk into the list of its longest run.
func (h *heap) link(link uint32, c *chunkRecord) {
	if c.longest == 0 {
		return
	}
	if c.vacant() {
		h.empty++
	}
	list := &h.rooms[c.kind]
	head := &list.heads[c.longest]
	c.next, c.prev = *head, 0
	if *head != 0 {
		h.linked(*head).prev = link
	}
	*head = link
	list.filled.add(int(c.longest))
}

// unlink takes the chunk out of its list, if it is in one.
func (h *heap) unlink(c *chunkRecord) {
	if c.longest == 0 {
		return
	}
	if c.vacant() {
		h.empty--
	}
	list := &h.rooms[c.kind]
	if c.next != 0 {
		h.linked(c.next).prev = c.prev
	}
	if c.prev != 0 {
		h.linked(c.prev).next = c.next
	} else if list.heads[c.longest] = c.next; c.next == 0 {
		list.filled.remove(int(c.longest))
	}
	c.longest = 0
}

// linked is the record that a list link names.
func (h *heap) linked(link uint32) *chunkRecord {
	return h.table.header(chunkRef(link - 1)).chunkRecord()
}

func chunkRef(number uint32) Ref { return Ref(number) << chunkShift }
