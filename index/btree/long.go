package btree

import (
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/epoch"
)

// keepLong stores a key out of line if it is long. The new pages are appended to
// fresh, latched; they are the caller's until the entry is in the tree.
func (t *Tree) keepLong(shard uint32, fresh *[]guard, key []byte, e *item) error {
	if len(key) <= inlineKey {
		return nil
	}
	e.long = 0
	for from := (len(key) - 1) / overflowBytes * overflowBytes; from >= 0; from -= overflowBytes {
		page, err := t.newNode(shard)
		if err != nil {
			return err
		}
		*fresh = append(*fresh, page)
		page.writePage(key[from:min(from+overflowBytes, len(key))], e.long)
		e.long = page.word
	}
	return nil
}

func (n node) writePage(part []byte, link uint64) {
	n.setLink(link)
	for at := 0; at < len(part); at += 8 {
		n.setWord(headerSize+uintptr(at), headAt(part, at))
	}
	n.setMeta(meta(overflowLevel)<<levelShift | meta(len(part))<<bytesShift)
}

// dropLong frees the overflow pages of a key that left the tree in the epoch now.
// No latch is held.
func (t *Tree) dropLong(h *epoch.Handle, word, now uint64) error {
	for word != 0 {
		page, err := t.enter(word)
		if err != nil {
			return err
		}
		link := page.link()
		if !t.dropPage(h, &page, now) {
			continue // it has just become a node in memory
		}
		word = link
	}
	return nil
}

// dropPage frees one page. Nobody latches it, but someone may still copy its
// image for an operation that was overtaken.
func (t *Tree) dropPage(h *epoch.Handle, page *guard, now uint64) bool {
	if !page.isImage() {
		if !page.tryLatch() {
			return false
		}
		t.drop(h, page, now)
		return true
	}
	if !atomic.CompareAndSwapUint64((*uint64)(page.state), page.seen, 0) {
		return false
	}
	t.count.add(h.Shard(), 0, -1)
	t.store.Dropped(h.Shard(), page.id(), page.entry(), page.epoch(), now)
	return true
}
