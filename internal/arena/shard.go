package arena

import (
	"math/bits"

	"github.com/rekindledb/rekindle/internal/invariants"
)

// shard is one allocation front. The latch guards its fields and the records
// of the spans it owns.
type shard struct {
	latch     latch
	id        uint32
	priority  Priority // of what it allocates at the limit
	inUse     int64
	requested int64
	open      [classCount]open
	lists     [classCount]Ref // listed spans
	_         [2 * lineSize]byte
}

// open is the current span of a class, with its places resolved. span is nil
// or has a free block.
type open struct {
	span  *span
	words *[bitmapWords]uint64
	block Ref // block 0
}

// take returns a block of the current span, 0 if there is none.
func (s *shard) take(c *class) Ref {
	o := &s.open[c.index]
	sp := o.span
	if sp == nil {
		return 0
	}
	w := sp.lowest & (bitmapWords - 1)
	for o.words[w] == 0 {
		w = (w + 1) & (bitmapWords - 1)
	}
	word := o.words[w]
	o.words[w] = word & (word - 1)
	sp.lowest = w
	sp.left--
	if sp.left == 0 {
		sp.state = full
		o.span = nil
	}
	return o.block + (Ref(w)<<6+Ref(bits.TrailingZeros64(word)))*Ref(c.size)
}

// put frees block r of the span at base. It returns true if the span is
// empty and was taken out of the shard, so that the caller must release it.
func (s *shard) put(t *table, c *class, sp *span, base, r Ref) bool {
	block := c.blockAt(r - base)
	w := uint8(block >> 6)
	words := sp.words(c, t, base)
	if invariants.Enabled && words[w]>>(block&63)&1 != 0 {
		invariants.Fail("block %#x of %d bytes is freed twice", uint64(r), c.size)
	}
	words[w] |= 1 << (block & 63)
	sp.lowest = min(sp.lowest, w)
	sp.left++
	switch {
	case sp.state == current:
		return false
	case sp.left == c.blocks:
		if sp.state == listed {
			s.unlist(t, sp)
		}
		return true
	case sp.state == full && sp.left >= c.listAt:
		s.list(t, sp, base)
	}
	return false
}

// list puts a span into the list of its class.
func (s *shard) list(t *table, sp *span, base Ref) {
	head := &s.lists[sp.class]
	sp.next, sp.prev, sp.state = *head, 0, listed
	if *head != 0 {
		t.span(*head).prev = base
	}
	*head = base
}

// unlist takes a span out of the list of its class.
func (s *shard) unlist(t *table, sp *span) {
	if sp.next != 0 {
		t.span(sp.next).prev = sp.prev
	}
	if sp.prev != 0 {
		t.span(sp.prev).next = sp.next
	} else {
		s.lists[sp.class] = sp.next
	}
	sp.state = current
}

// promote sees to it that the class has a current span; false if no span has
// a free block.
func (s *shard) promote(t *table, c *class) bool {
	o := &s.open[c.index]
	base := s.lists[c.index]
	if o.span != nil || base == 0 {
		return o.span != nil
	}
	sp := t.span(base)
	s.unlist(t, sp)
	*o = open{span: sp, words: sp.words(c, t, base), block: base + Ref(c.first)}
	return true
}

// trim takes a current span out of the shard that is wholly free; 0 = none. The
// caller must release it.
func (s *shard) trim(a *Arena) (*class, Ref) {
	s.latch.lock()
	defer s.latch.unlock()
	for i := range s.open {
		o, c := &s.open[i], &a.classes[i]
		if o.span != nil && o.span.left == c.blocks {
			o.span = nil
			return c, o.block - Ref(c.first)
		}
	}
	return nil, 0
}

// refill takes a block after take had none. The shard's latch is held on
// entry and on success, not on an error.
func (a *Arena) refill(s *shard, c *class) (Ref, error) {
	for !s.promote(&a.table, c) {
		s.latch.unlock()
		base, err := a.acquire(s, c)
		if err != nil {
			return 0, err
		}
		s.latch.lock()
		s.list(&a.table, a.table.span(base), base)
	}
	return s.take(c), nil
}

// acquire finds a span with free blocks elsewhere. It belongs to the shard
// already, but is in no list.
func (a *Arena) acquire(s *shard, c *class) (Ref, error) {
	if base := a.steal(s, c); base != 0 {
		return base, nil
	}
	base, err := a.heap.allocSpan(c, s)
	if invariants.Enabled && err == nil {
		a.poisonSpan(c, base)
	}
	return base, err
}

// steal takes a listed span from a shard that is not busy.
func (a *Arena) steal(s *shard, c *class) Ref {
	for i := uint32(1); i <= a.mask&c.shardMask; i++ {
		from := &a.shards[(s.id+i)&a.mask]
		if !from.latch.tryLock() {
			continue
		}
		base := from.lists[c.index]
		if base != 0 {
			sp := a.table.span(base)
			from.unlist(&a.table, sp)
			sp.owner.Store(s.id)
		}
		from.latch.unlock()
		if base != 0 {
			return base
		}
	}
	return 0
}

// latchOwner latches the shard that owns the span.
func (a *Arena) latchOwner(sp *span) *shard {
	for {
		s := &a.shards[sp.owner.Load()]
		s.latch.lock()
		if sp.owner.Load() == s.id {
			return s
		}
		s.latch.unlock()
	}
}
