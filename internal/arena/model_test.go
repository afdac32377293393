package arena

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a live block in a model; every word of it holds its tag.
type block struct {
	ref  Ref
	size int
	tag  uint64
	kept bool // of AllocStable
}

func (b block) write(a *Arena) {
	mem := a.Bytes(b.ref, b.size)
	for i := 0; i+8 <= len(mem); i += 8 {
		binary.LittleEndian.PutUint64(mem[i:], b.tag)
	}
	for i := len(mem) &^ 7; i < len(mem); i++ {
		mem[i] = byte(b.tag)
	}
}

// intact reports whether nobody else wrote to the block.
func (b block) intact(a *Arena) bool {
	mem := a.Bytes(b.ref, b.size)
	for i := 0; i+8 <= len(mem); i += 8 {
		if binary.LittleEndian.Uint64(mem[i:]) != b.tag {
			return false
		}
	}
	for i := len(mem) &^ 7; i < len(mem); i++ {
		if mem[i] != byte(b.tag) {
			return false
		}
	}
	return true
}

// classBytes is what a block of the size occupies.
func classBytes(size int) int64 {
	if size > maxSmall {
		return int64(size+pageSize-1) &^ (pageSize - 1)
	}
	return int64(classSize(classOf(size)))
}

func randomSize(rng *rand.Rand) int {
	switch n := rng.IntN(1000); {
	case n < 600:
		return rng.IntN(300)
	case n < 800:
		return 1 << (9 + rng.IntN(4))
	case n < 980:
		return rng.IntN(8 << 10)
	case n < 998:
		return rng.IntN(maxSmall + 64<<10)
	default:
		return rng.IntN(MaxBlock + 1)
	}
}

// model allocates and frees at random and keeps the account itself.
type model struct {
	*testing.T
	arena            *Arena
	rng              *rand.Rand
	live             []block
	inUse, requested int64
	stable           map[Ref]bool // freed stable blocks
}

func (m *model) alloc() { require.NoError(m, m.tryAlloc()) }

func (m *model) tryAlloc() (err error) {
	size, shard := randomSize(m.rng), Growth.Shard(m.rng.Uint32())
	b := block{size: size, tag: m.rng.Uint64()}
	switch n := m.rng.IntN(8); {
	case n == 0:
		b.size, b.kept = StableBlock, true
		b.ref, err = m.arena.AllocStable(shard)
	case n < 3 && size <= maxSmall:
		b.ref, err = m.arena.AllocLasting(shard, size)
	default:
		b.ref, err = m.arena.Alloc(shard, size)
	}
	if err != nil {
		return err
	}
	m.checkPlace(b)
	b.write(m.arena)
	m.live = append(m.live, b)
	m.inUse += classBytes(b.size)
	m.requested += int64(b.size)
	require.False(m, m.stable[b.ref] && !b.kept, "memory of a stable block is another one's")
	delete(m.stable, b.ref)
	return nil
}

func (m *model) checkPlace(b block) {
	align := Ref(8)
	if b.size >= 64 && b.size <= 4096 && b.size&(b.size-1) == 0 {
		align = Ref(b.size)
	}
	if b.ref == 0 || b.ref >= 1<<47 || b.ref%align != 0 || uintptr(m.arena.Pointer(b.ref))%uintptr(align) != 0 {
		m.Fatalf("block of %d bytes at %#x", b.size, b.ref)
	}
}

func (m *model) free() {
	if len(m.live) == 0 {
		return
	}
	i := m.rng.IntN(len(m.live))
	b := m.live[i]
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	require.True(m, b.intact(m.arena), "block of %d bytes at %#x was overwritten", b.size, b.ref)
	m.arena.Free(m.rng.Uint32(), b.ref, b.size)
	if b.kept {
		m.stable[b.ref] = true
	}
	m.inUse -= classBytes(b.size)
	m.requested -= int64(b.size)
}

func (m *model) check() {
	st := m.arena.Stats()
	require.Equal(m, m.inUse, st.InUse)
	require.Equal(m, m.requested, st.Requested)
	validate(m.T, m.arena)
}

func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &model{T: t, arena: newArena(t, Config{Shards: 4}), rng: rand.New(rand.NewPCG(seed, 0)), stable: map[Ref]bool{}}
	for round := range 24 {
		growth := []int{90, 50, 10}[round%3] // per cent of allocations
		for range 3000 {
			if m.rng.IntN(100) < growth {
				m.alloc()
			} else {
				m.free()
			}
		}
		m.check()
		if round >= 12 {
			m.arena.Trim()
			m.check()
		}
		if round%2 == 0 {
			m.arena.Thin()
			m.check()
		}
	}
	for len(m.live) > 0 {
		m.free()
	}
	m.check()
	m.checkStable()
	require.Zero(t, m.arena.Stats().InUse)
	for i := range m.arena.shards {
		require.Zero(t, m.arena.shards[i].lists, "free spans are kept")
	}
	m.arena.Trim()
	m.check()
	st := m.arena.Stats()
	require.LessOrEqual(t, st.Reserved, int64(st.Chunks)*ChunkSize-int64(len(m.stable)*StableBlock))
	require.Zero(t, m.arena.heap.empty, "chunks without a place for stable blocks")
}

// checkStable looks at the beginnings of freed stable blocks: they are what the
// blocks ended with, or zero.
func (m *model) checkStable() {
	for ref := range m.stable {
		for at := Ref(0); at < stableHead; at += 8 {
			have, end := m.arena.Word(ref+at).Load(), m.arena.Word(ref+stableHead-8).Load()
			require.True(m, have == end || have == 0 || end == 0, "a freed stable block was written to")
		}
	}
}
