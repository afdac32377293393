package arena

import (
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
)

// Priority says what a block is for, and with that how much of the reserve it may
// take (see SetReserve): what makes a database smaller must get memory where nothing
// else does.
type Priority uint8

const (
	Growth     Priority = iota // everything else
	Collect                    // to remove index entries that nobody needs: it can wait
	Shrink                     // deletes and the like, and the compaction of the log
	Checkpoint                 // what a checkpoint needs: behind it indexes take less
	priorities
)

const priorityShift = 30

// Shard gives a shard number a priority.
func (p Priority) Shard(n uint32) uint32 {
	return n&(1<<priorityShift-1) | uint32(p)<<priorityShift
}

func priorityOf(shard uint32) Priority { return Priority(shard >> priorityShift) }

// SetReserve keeps bytes of Config.Limit back: Growth leaves all of them, Collect
// three quarters, Shrink one, and Checkpoint nothing.
//
// What is kept are pages in runs into which spans of blocks of up to 4 KiB fit, in
// chunks or where a chunk may still be mapped. For larger blocks a run must be found.
func (a *Arena) SetReserve(bytes int64) {
	pages := int(bytes >> pageShift)
	a.heap.mu.Lock()
	defer a.heap.mu.Unlock()
	a.heap.kept = [priorities]int{Growth: pages, Collect: pages - pages/4, Shrink: pages / 4}
}

// reserve is the shard of those who have got to the limit and may take of the
// reserve. They have one of their own, because what they leave of a span would
// otherwise be used by others, and the reserve with it.
func (a *Arena) reserve(p Priority) *shard { return &a.shards[a.mask+uint32(p)] }

// inRuns is how many pages are free in long runs or in chunks not in use.
func (h *heap) inRuns() int {
	unused := int((h.limit+h.parkedLen)/ChunkSize) - h.chunks
	return unused*(pagesPerChunk-1) + h.runs
}

func (h *heap) errReserve(p Priority) error {
	return fmt.Errorf("arena: of %d bytes, %d are kept for what makes room: %w", h.limit, h.kept[p]<<pageShift, fault.ErrMemoryLimit)
}
