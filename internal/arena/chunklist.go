package arena

// relist moves a chunk whose set of free pages has changed to its list.
func (h *heap) relist(chunk Ref, c *chunkRecord) {
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
	if c.longest == pagesPerChunk-1 {
		h.empty++
	}
	head := &h.lists[c.longest]
	c.next, c.prev = *head, 0
	if *head != 0 {
		h.linked(*head).prev = link
	}
	*head = link
	h.filled.add(int(c.longest))
}

// unlink takes the chunk out of its list, if it is in one.
func (h *heap) unlink(c *chunkRecord) {
	if c.longest == 0 {
		return
	}
	if c.longest == pagesPerChunk-1 {
		h.empty--
	}
	if c.next != 0 {
		h.linked(c.next).prev = c.prev
	}
	if c.prev != 0 {
		h.linked(c.prev).next = c.next
	} else if h.lists[c.longest] = c.next; c.next == 0 {
		h.filled.remove(int(c.longest))
	}
	c.longest = 0
}

// linked is the record that a list link names.
func (h *heap) linked(link uint32) *chunkRecord {
	return h.table.header(chunkRef(link - 1)).chunkRecord()
}

func chunkRef(number uint32) Ref { return Ref(number) << chunkShift }
