package chainindex

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Lookup looks into every layer, newest first. Writers that begin meanwhile
// write into the head that was there at the start or into a newer one; for one
// key, they do not write into the former after they have into the latter. So the
// layers together are the index as it was at one moment.
func (x *Index) Lookup(h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	c := x.chain.Load()
	start := len(dst)
	found, err := c.collect(h, key, dst, 0, len(c.layers))
	if err != nil {
		return dst, err
	}
	return found[:start+len(settle(found[start:], x.spec.Table))], nil
}

// LookupBatch looks up all keys in one layer after the other, so that the cache
// misses of many keys overlap, and then puts together what belongs to each.
func (x *Index) LookupBatch(h *epoch.Handle, keys [][]byte, dst []rowid.ID, ends []int) ([]rowid.ID, []int, error) {
	c := x.chain.Load()
	w := x.works.get(nil)
	defer x.works.put(w)
	w.places, w.ends = w.places[:0], w.ends[:0]
	for i, l := range c.layers {
		start := len(w.places)
		var err error
		if w.places, w.ends, err = l.lookupBatch(h, keys, w.places, w.ends); err != nil {
			return dst, ends, err
		}
		tag(w.places[start:], c.age(i))
	}
	for i := range keys {
		start := len(dst)
		for at := i; at < len(w.ends); at += len(keys) {
			dst = append(dst, w.found(at)...)
		}
		dst = dst[:start+len(settle(dst[start:], x.spec.Table))]
		ends = append(ends, len(dst))
	}
	return dst, ends, nil
}

// found returns the places of the i-th of all lookups of a batch.
func (w *work) found(i int) []rowid.ID {
	if i == 0 {
		return w.places[:w.ends[0]]
	}
	return w.places[w.ends[i-1]:w.ends[i]]
}

// maxSkipped bounds the removed entries that one call to Scan passes by.
const maxSkipped = 4096

// Scan merges the layers.
func (x *Index) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	layers := x.chain.Load().layers
	if len(layers) == 1 {
		return x.scanHead(layers[0], h, r, c, b)
	}
	b.Begin(c)
	w := x.works.get(nil)
	defer x.works.put(w)
	if err := w.merge.begin(h, layers, r, c, b.Room()); err != nil {
		return false, err
	}
	return x.deliver(&w.merge, c, b)
}

// deliver fills the batch from a merge. Skipped entries move the cursor too, so
// that every call comes further.
func (x *Index) deliver(m *merge, c *index.Cursor, b *index.Batch) (bool, error) {
	skipped := 0
	for b.Room() > 0 {
		live, ok, err := m.next()
		switch {
		case err != nil:
			return false, err
		case !ok:
			b.Finish(c)
			return false, nil
		case live:
			b.Append(m.key, rowid.Make(x.spec.Table, m.ordinal))
		default:
			if skipped++; skipped == maxSkipped {
				c.Set(m.key, rowid.Make(x.spec.Table, m.ordinal))
				return true, nil
			}
		}
	}
	b.Finish(c)
	return true, nil
}

// scanHead scans a chain of one layer. There is nothing older to remove, so it
// has no tombstones, and its batch is the result but for the form of the rows.
func (x *Index) scanHead(head *layer, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if c.Started() {
		key, row := c.Entry()
		c.Set(key, placeBehind(row, r.Reverse))
	}
	more, err := head.scan(h, r, c, b)
	if err != nil {
		return false, err
	}
	rows := b.Rows()
	for i, p := range rows {
		rows[i] = rowid.Make(x.spec.Table, placeOrdinal(p))
	}
	if c.Started() {
		key, place := c.Entry()
		c.Set(key, rowid.Make(x.spec.Table, placeOrdinal(place)))
	}
	return more, nil
}
