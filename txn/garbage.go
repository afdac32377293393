package txn

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/rowid"
)

// GarbageKind says what the collector has to do about a piece of garbage.
type GarbageKind uint8

const (
	// GarbageVersions: take the versions that no snapshot sees out of the
	// row's chain; empty the slot if only a tombstone is left.
	GarbageVersions GarbageKind = iota + 1
	// GarbageSuspect: remove the entry (Index, Key, Row) if no version of the
	// row has the key any more.
	GarbageSuspect
	// GarbageRow: the slot is empty and all suspects before this are worked
	// off; the ordinal may be used again.
	GarbageRow

	garbageKinds // how many there are, plus one
)

// Garbage is one piece of work for the collector, due when the horizon has
// reached CTS.
type Garbage struct {
	CTS   uint64
	Row   rowid.ID
	Kind  GarbageKind
	Index uint8
	Key   []byte
}

// Queue carries garbage from transactions to the collector, first in first
// out. What a transaction reports about one row stays in order. Garbage of
// commits waits for the horizon; that of aborts and failed statements is due
// at once and does not queue behind it.
type Queue struct {
	waiting fifo
	due     fifo
	asleep  atomic.Bool // the collector waits for wake
	wake    chan struct{}
}

func (q *Queue) init() { q.wake = make(chan struct{}, 1) }

// Wait blocks until there is garbage; false means that ctx ended first. Only
// the collector waits.
func (q *Queue) Wait(ctx context.Context) bool {
	q.asleep.Store(true)
	defer q.asleep.Store(false)
	if q.Len() > 0 {
		return true
	}
	select {
	case <-q.wake:
		return true
	case <-ctx.Done():
		return false
	}
}

// Take moves all garbage reported so far into the given lists.
func (q *Queue) Take(waiting, due *GarbageList) {
	q.waiting.take(waiting)
	q.due.take(due)
}

// Len returns how many pieces have not been taken.
func (q *Queue) Len() int { return int(q.waiting.length.Load() + q.due.length.Load()) }

// Count returns how many of them are of a kind.
func (q *Queue) Count(kind GarbageKind) int { return q.waiting.countKind(kind) + q.due.countKind(kind) }

func (q *Queue) add(g Garbage) {
	f := &q.waiting
	if g.CTS == 0 {
		f = &q.due
	}
	f.mu.Lock()
	f.list.Add(g)
	f.mu.Unlock()
	f.length.Add(1)
	if q.asleep.Load() && q.asleep.Swap(false) {
		q.Wake()
	}
}

// Wake makes Wait return: for who has taken garbage while the collector may have
// been about to wait for it.
func (q *Queue) Wake() {
	select {
	case q.wake <- struct{}{}:
	default: // it has a token already
	}
}

func (q *Queue) versions(cts uint64, row rowid.ID) {
	q.add(Garbage{CTS: cts, Row: row, Kind: GarbageVersions})
}

func (q *Queue) suspect(cts uint64, row rowid.ID, index int, key []byte) {
	q.add(Garbage{CTS: cts, Row: row, Kind: GarbageSuspect, Index: uint8(index), Key: key})
}

func (q *Queue) free(cts uint64, row rowid.ID) {
	q.add(Garbage{CTS: cts, Row: row, Kind: GarbageRow})
}

type fifo struct {
	mu     sync.Mutex
	list   GarbageList
	length atomic.Int64
}

func (f *fifo) take(into *GarbageList) {
	if f.length.Load() == 0 {
		return
	}
	f.mu.Lock()
	taken := f.list.Len()
	into.Append(&f.list)
	f.mu.Unlock()
	f.length.Add(-int64(taken))
}

func (f *fifo) countKind(kind GarbageKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list.Count(kind)
}

// GarbageList is a queue of garbage without pointers per element. It is not
// safe for concurrent use.
type GarbageList struct {
	chunks []*garbageChunk
	spare  *garbageChunk
	count  int
	kinds  [garbageKinds]int
}

const garbageChunkItems = 4096

type garbageChunk struct {
	items []garbageItem
	keys  []byte
	next  int // first item not yet dropped
}

type garbageItem struct {
	cts     uint64
	row     rowid.ID
	kind    GarbageKind
	index   uint8
	keyFrom uint32
	keyTo   uint32
}

// Add appends a piece of garbage, copying its key.
func (l *GarbageList) Add(g Garbage) {
	c := l.tail()
	from := uint32(len(c.keys))
	c.keys = append(c.keys, g.Key...)
	c.items = append(c.items, garbageItem{g.CTS, g.Row, g.Kind, g.Index, from, uint32(len(c.keys))})
	l.count++
	l.kinds[g.Kind]++
}

func (l *GarbageList) tail() *garbageChunk {
	if n := len(l.chunks); n > 0 && len(l.chunks[n-1].items) < garbageChunkItems {
		return l.chunks[n-1]
	}
	c := l.spare
	l.spare = nil
	if c == nil {
		c = &garbageChunk{}
	}
	l.chunks = append(l.chunks, c)
	return c
}

// First returns the oldest piece; its key is valid until Drop.
func (l *GarbageList) First() (Garbage, bool) {
	if l.count == 0 {
		return Garbage{}, false
	}
	c := l.chunks[0]
	return c.at(c.next), true
}

func (c *garbageChunk) at(i int) Garbage {
	item := c.items[i]
	return Garbage{item.cts, item.row, item.kind, item.index, c.keys[item.keyFrom:item.keyTo:item.keyTo]}
}

// Drop removes the oldest piece.
func (l *GarbageList) Drop() {
	c := l.chunks[0]
	l.kinds[c.items[c.next].kind]--
	c.next++
	l.count--
	if c.next < len(c.items) {
		return
	}
	l.chunks[0] = nil // the array behind the slice would keep it alive
	l.chunks = l.chunks[1:]
	if l.spare == nil {
		c.items, c.keys, c.next = c.items[:0], c.keys[:0], 0
		l.spare = c
	}
}

// Len returns the number of pieces.
func (l *GarbageList) Len() int { return l.count }

// Count returns the number of pieces of a kind.
func (l *GarbageList) Count(kind GarbageKind) int { return l.kinds[kind] }

// All calls f with each piece, oldest first; keys are valid during the call.
func (l *GarbageList) All(f func(Garbage)) {
	for _, c := range l.chunks {
		for i := c.next; i < len(c.items); i++ {
			f(c.at(i))
		}
	}
}

// At returns the i-th piece of a list that nothing was dropped from or appended
// to; its key is valid until the list changes.
func (l *GarbageList) At(i int) Garbage {
	return l.chunks[i/garbageChunkItems].at(i % garbageChunkItems)
}

// Append moves the content of other behind l's.
func (l *GarbageList) Append(other *GarbageList) {
	l.chunks = append(l.chunks, other.chunks...)
	l.count += other.count
	for kind, n := range other.kinds {
		l.kinds[kind] += n
	}
	other.chunks, other.count, other.kinds = nil, 0, [garbageKinds]int{}
}
