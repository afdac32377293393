package arena

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/invariants"
)

func TestMisuseIsReported(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs the invariants tag")
	}
	tests := []struct {
		name   string
		misuse func(a *Arena, r Ref)
	}{
		{"second free", func(a *Arena, r Ref) { a.Free(0, r, 100); a.Free(0, r, 100) }},
		{"wrong size", func(a *Arena, r Ref) { a.Free(0, r, 300) }},
		{"wrong size, large", func(a *Arena, r Ref) { a.Free(0, r, maxSmall+1) }},
		{"inside of a block", func(a *Arena, r Ref) { a.Free(0, r+8, 100) }},
		{"no chunk", func(a *Arena, r Ref) { a.Pointer(r + ChunkSize) }},
		{"nil", func(a *Arena, r Ref) { a.Bytes(0, 8) }},
		{"unaligned word", func(a *Arena, r Ref) { a.Word(r + 4) }},
		{"write after free", func(a *Arena, r Ref) {
			p := (*byte)(a.Pointer(r + 50))
			a.Free(0, r, 100)
			*p = 1
			_, _ = a.Alloc(0, 100)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newArena(t, Config{Shards: 1})
			r := mustAlloc(t, a, 0, 100)
			require.Panics(t, func() { tt.misuse(a, r) })
		})
	}
}

func TestBlocksArePoisoned(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs the invariants tag")
	}
	a := newArena(t, Config{})
	for _, size := range []int{40, 136, 2048, 200 << 10} {
		r := mustAlloc(t, a, 0, size)
		b := a.Bytes(r, size)
		require.Equal(t, []byte{poisonByte, poisonByte}, []byte{b[0], b[size-1]}, "never used")
		clear(b)
		a.Free(0, r, size)
		require.Equal(t, []byte{poisonByte, poisonByte}, []byte{b[0], b[size-1]}, "freed")
	}
}
