package rowid

import (
	"sync"
	"sync/atomic"
)

const magazineSize = 256

// magazine is a stack of freed ordinals.
type magazine struct {
	ordinals []uint64 // capacity magazineSize
	below    *magazine
}

func newMagazine() *magazine { return &magazine{ordinals: make([]uint64, 0, magazineSize)} }

func (m *magazine) pop() uint64 {
	last := len(m.ordinals) - 1
	n := m.ordinals[last]
	m.ordinals = m.ordinals[:last]
	return n
}

// depot holds the freed ordinals that no shard has taken yet.
type depot struct {
	count atomic.Int64 // ordinals in the depot; changed under mu only

	mu      sync.Mutex
	filling *magazine // takes what is freed; nil or not full
	full    *magazine // stack of full magazines
}

func (d *depot) put(ordinal uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.filling == nil {
		d.filling = newMagazine()
	}
	m := d.filling
	m.ordinals = append(m.ordinals, ordinal)
	if len(m.ordinals) == magazineSize {
		m.below, d.full, d.filling = d.full, m, nil
	}
	d.count.Add(1)
}

// exchange replaces an empty magazine (or nil) by one with ordinals; false if
// there is none. The empty one is filled next, so that a table with a steady
// number of rows allocates no magazines.
func (d *depot) exchange(empty **magazine) bool {
	if d.count.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.take()
	if m == nil {
		return false
	}
	if d.filling == nil {
		d.filling = *empty
	}
	*empty = m
	d.count.Add(-int64(len(m.ordinals)))
	return true
}

func (d *depot) take() *magazine {
	m := d.full
	if m != nil {
		d.full, m.below = m.below, nil
		return m
	}
	m = d.filling
	if m == nil || len(m.ordinals) == 0 {
		return nil
	}
	d.filling = nil
	return m
}
