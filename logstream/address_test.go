package logstream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressFields(t *testing.T) {
	cases := []struct {
		stream int
		pos    Position
		size   int
	}{
		{0, 0, 24},
		{0, 8, 32},
		{1, 4096, 150},
		{62, MaxPosition - 8, 1 << 20},
		{63, 512, MaxClassBytes},
		{5, 1 << 40, MaxClassBytes + 1},
	}
	for _, c := range cases {
		a := MakeAddress(c.stream, c.pos, c.size)
		require.True(t, a.IsValid())
		require.Equal(t, c.stream, a.Stream())
		require.Equal(t, c.pos, a.Position())
		require.NotZero(t, uint64(a)>>63)
	}
	require.False(t, Address(0).IsValid())
	require.Equal(t, "log 1:0x1000", MakeAddress(1, 4096, 10).String())
	require.Contains(t, Address(1).String(), "invalid")
}

func checkClass(t *testing.T, size int) {
	t.Helper()
	bound := MakeAddress(0, 0, size).SizeBound()
	if size > MaxClassBytes {
		require.Zero(t, bound, "size %d", size)
		return
	}
	require.GreaterOrEqual(t, bound, size, "size %d", size)
	padded := (size + 7) &^ 7
	require.LessOrEqual(t, float64(bound-padded), float64(padded)/8, "size %d bound %d", size, bound)
}

func TestSizeClassBounds(t *testing.T) {
	for size := 0; size <= 1<<12; size++ {
		checkClass(t, size)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		checkClass(t, rng.IntN(2*MaxClassBytes))
	}
	for _, size := range []int{MaxClassBytes - 1, MaxClassBytes, MaxClassBytes + 1} {
		checkClass(t, size)
	}
}

func TestSizeClassesAreOrderedAndExactAtTheirBounds(t *testing.T) {
	last := -1
	for class := uint64(0); class <= classLast; class++ {
		bound := classBound(class)
		require.Greater(t, bound, last)
		require.Equal(t, class, sizeClass(bound))
		require.Equal(t, class+1, sizeClass(bound+1))
		last = bound
	}
	require.Equal(t, MaxClassBytes, last)
}

func FuzzAddressRoundTrip(f *testing.F) {
	f.Add(uint8(3), uint64(1<<30), uint32(200))
	f.Fuzz(func(t *testing.T, stream uint8, pos uint64, size uint32) {
		s, p := int(stream&63), Position(pos)&(MaxPosition-8)
		a := MakeAddress(s, p, int(size))
		require.Equal(t, s, a.Stream())
		require.Equal(t, p, a.Position())
		checkClass(t, int(size))
	})
}
