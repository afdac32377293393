package vfs

import "slices"

const (
	sectorSize = 512  // written or lost as a whole in a crash
	pageSize   = 4096 // unit of sharing between copies
)

// memOwner marks the pages that one Mem may change in place. All other pages
// are shared with a clone and are copied before a change.
type memOwner struct{ _ byte }

type memPage struct {
	owner *memOwner
	data  [pageSize]byte
}

// memContent is the bytes of a file. Pages that are nil or missing read as
// zeros, and so does everything behind size, in every page.
type memContent struct {
	size  int64
	pages []*memPage
}

// clone returns a copy that shares all pages. Before either side is written to
// again the Mem must take a new owner mark.
func (c *memContent) clone() memContent {
	return memContent{c.size, slices.Clone(c.pages)}
}

// readAt copies bytes out and returns how many there are before the end.
func (c *memContent) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for done := 0; done < len(p); {
		done += c.readPage(p[done:], off+int64(done))
	}
	return len(p)
}

// readPage fills p up to the end of the page that holds off.
func (c *memContent) readPage(p []byte, off int64) int {
	start := off % pageSize
	p = p[:min(int64(len(p)), pageSize-start)]
	if i := off / pageSize; i < int64(len(c.pages)) && c.pages[i] != nil {
		return copy(p, c.pages[i].data[start:])
	}
	clear(p)
	return len(p)
}

func (c *memContent) writeAt(owner *memOwner, p []byte, off int64) {
	c.size = max(c.size, off+int64(len(p)))
	for len(p) > 0 {
		n := copy(c.page(owner, off/pageSize)[off%pageSize:], p)
		p, off = p[n:], off+int64(n)
	}
}

// page returns page i for writing.
func (c *memContent) page(owner *memOwner, i int64) []byte {
	if missing := int(i) + 1 - len(c.pages); missing > 0 {
		c.pages = append(c.pages, make([]*memPage, missing)...)
	}
	page := c.pages[i]
	if page == nil || page.owner != owner {
		fresh := &memPage{owner: owner}
		if page != nil {
			fresh.data = page.data
		}
		c.pages[i] = fresh
	}
	return c.pages[i].data[:]
}

// resize cuts the content or appends zeros.
func (c *memContent) resize(owner *memOwner, size int64) {
	if size < c.size {
		if keep := (size + pageSize - 1) / pageSize; keep < int64(len(c.pages)) {
			clear(c.pages[keep:])
			c.pages = c.pages[:keep]
		}
		if i := size / pageSize; i < int64(len(c.pages)) && c.pages[i] != nil {
			clear(c.page(owner, i)[size%pageSize:])
		}
	}
	c.size = size
}

// sector returns sector i, with zeros behind the end.
func (c *memContent) sector(i int64) (s memSector) {
	c.readAt(s[:], i*sectorSize)
	return s
}

// setSector replaces sector i, or its part before the end.
func (c *memContent) setSector(owner *memOwner, i int64, s memSector) {
	off := i * sectorSize
	if n := min(c.size-off, sectorSize); n > 0 {
		c.writeAt(owner, s[:n], off)
	}
}
