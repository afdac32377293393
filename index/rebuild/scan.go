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
	at := cursorEntry(c)
	resume := c.Started() && before(start, at)
	if resume {
		start = at
	}
	x.entries.AscendGreaterOrEqual(start, func(e entry) bool {
		if resume {
			resume = false
			if !before(at, e) { // the entry under the cursor
				return true
			}
		}
		if r.Hi != nil && !before(e, end) {
			return false
		}
		more = x.deliver(e, b)
		return !more
	})
	return more
}

func (x *tree) descend(r index.Range, c *index.Cursor, b *index.Batch) (more bool) {
	start, end := view(r.Hi, 0), view(r.Lo, 0)
	at := cursorEntry(c)
	resume := c.Started() && (r.Hi == nil || before(at, start))
	if resume {
		start = at
	}
	visit := func(e entry) bool {
		if resume {
			resume = false
			if !before(e, at) {
				return true
			}
		}
		if before(e, end) {
			return false
		}
		more = x.deliver(e, b)
		return !more
	}
	if r.Hi == nil && !resume {
		x.entries.Descend(visit)
	} else {
		x.entries.DescendLessOrEqual(start, visit)
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
