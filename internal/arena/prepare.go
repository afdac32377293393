package arena

// ahead is how many free pages prepare keeps in stock: half a chunk in a small
// arena, growing with it to eight chunks, to take up bursts that are faster
// than the system provides memory.
func (h *heap) ahead() int {
	return pagesPerChunk/2 + min(h.chunks/32, 8)*pagesPerChunk
}

// prepareAhead starts prepare if the stock is low.
func (h *heap) prepareAhead() {
	if h.freePages < h.ahead() && !h.preparing && h.reserve() {
		h.preparing = true
		go h.prepare()
	}
}

// prepare adds chunks whose memory is present until the stock is filled up.
func (h *heap) prepare() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for more := true; more; more = h.freePages < h.ahead() && h.reserve() {
		chunk, err := h.spare()
		if err != nil {
			break // the allocation that needs the chunk will meet and report it
		}
		h.mu.Unlock()
		populate(h.table.memory(chunk))
		h.mu.Lock()
		h.activate(chunk)
		h.progress.Broadcast()
	}
	h.preparing = false
	h.progress.Broadcast()
}
