package rebuild

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
)

// Scan fills the batch under the readers' latch.
func (x *tree) Scan(h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	b.Begin(c)
	x.latch.RLock(h.Shard())
	var more bool
	if r.Reverse {
		more = x.descend(r, c, b)
	} else {
		more = x.ascend(r, c, b)
	}
	x.latch.RUnlock(h.Shard())
	b.Finish(c)
	return more, nil
}

func (x *tree) ascend(r index.Range, c *index.Cursor, b *index.Batch) (more bool) {
	start, end := view(r.Lo, 0), view(r.Hi, 0)
	if c.Started() {
		if behind := cursorEntry(c).next(); less(start, behind) {
			start = behind
		}
	}
	x.entries.AscendGreaterOrEqual(start, func(e entry) bool {
		if r.Hi != nil && !less(e, end) {
			return false
		}
		more = x.deliver(e, b)
		return !more
	})
	return more
}

func (x *tree) descend(r index.Range, c *index.Cursor, b *index.Batch) (more bool) {
	end := view(r.Lo, 0)
	visit := func(e entry) bool {
		if less(e, end) {
			return false
		}
		more = x.deliver(e, b)
		return !more
	}
	start, bounded := view(r.Hi, 0), r.Hi != nil
	if c.Started() {
		if behind := cursorEntry(c).previous(); !bounded || less(behind, start) {
			start, bounded = behind, true
		}
	}
	if bounded {
		x.entries.DescendLessOrEqual(start, visit)
	} else {
		x.entries.Descend(visit)
	}
	return more
}

// deliver copies e into the batch, or reports that there is no room for it.
func (x *tree) deliver(e entry, b *index.Batch) (full bool) {
	if b.Room() <= 0 {
		return true
	}
	e.appendTo(b, x.row(e))
	return false
}

func cursorEntry(c *index.Cursor) entry {
	key, row := c.Entry()
	return view(key, row.Ordinal())
}
