package epoch

import "github.com/rekindledb/rekindle/internal/arena"

// retired is a block that waits for pins to end.
type retired struct {
	ref  arena.Ref
	size uint32
	// epoch holds the low 32 bits. A block that waits while the epoch goes
	// on by more than 1<<31, which nobody has seen, looks too young for a
	// while: late, but safe.
	epoch uint32
}

func (r retired) due(now uint64) bool { return int32(uint32(now)-r.epoch) >= 2 }

// ring is a queue of retired blocks. It has no pointers to anything but its
// own slice, which is a power of two long, grows with the number of blocks
// and shrinks again in reclaim passes.
type ring struct {
	slots []retired
	head  int // position of the oldest block
	count int
}

const (
	minSlots  = 64
	keepSlots = 1024 // up to here the slice is not shortened
)

func (q *ring) push(r retired) {
	if q.count == len(q.slots) {
		q.resize(max(minSlots, 2*len(q.slots)))
	}
	q.slots[(q.head+q.count)&(len(q.slots)-1)] = r
	q.count++
}

// popDue moves the oldest blocks that are due to dst, as many as fit.
func (q *ring) popDue(now uint64, dst []retired) int {
	n := 0
	for n < len(dst) && n < q.count {
		r := q.slots[(q.head+n)&(len(q.slots)-1)]
		if !r.due(now) {
			break
		}
		dst[n] = r
		n++
	}
	q.head += n
	q.count -= n
	return n
}

// shrink halves the slice after a backlog is gone.
func (q *ring) shrink() {
	if len(q.slots) > keepSlots && q.count < len(q.slots)/8 {
		q.resize(len(q.slots) / 2)
	}
}

func (q *ring) resize(n int) {
	slots := make([]retired, n)
	for i := range q.count {
		slots[i] = q.slots[(q.head+i)&(len(q.slots)-1)]
	}
	q.slots, q.head = slots, 0
}
