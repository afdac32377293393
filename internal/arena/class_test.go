package arena

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassOfEverySize(t *testing.T) {
	for size := 0; size <= maxSmall; size++ {
		i := classOf(size)
		if got := classSize(i); got < size || i > 0 && classSize(i-1) >= size {
			t.Fatalf("size %d has class %d of %d bytes", size, i, got)
		} else if size > 64 && (got-size)*8 > got {
			t.Fatalf("size %d wastes %d of %d bytes", size, got-size, got)
		}
	}
	require.Equal(t, minBlock, classSize(0))
	require.Equal(t, maxSmall, classSize(sizeCount-1))
	require.Equal(t, sizeCount-1, classOf(maxSmall))
}

func TestClassGeometry(t *testing.T) {
	var classes [classCount]class
	makeClasses(&classes)
	for i := range classes {
		c := &classes[i]
		require.EqualValues(t, i, c.index)
		size, span := int(c.size), int(c.pages)<<pageShift
		used := int(c.first) + int(c.blocks)*size
		require.Zero(t, size%8)
		require.LessOrEqual(t, used, span, "size %d", size)
		require.LessOrEqual(t, (span-used)*16, span, "size %d", size)
		require.Less(t, span, 1<<18, "size %d", size)
		limit := inlineBlocks
		if c.first > 0 {
			limit = bitmapWords * 64
		}
		require.LessOrEqual(t, int(c.blocks), limit, "size %d", size)
		for b := range uint(c.blocks) {
			if got := c.blockAt(Ref(c.first) + Ref(b)*Ref(size)); got != b {
				t.Fatalf("size %d: block %d is taken for %d", size, b, got)
			}
		}
	}
}

func TestSpansFitIntoRuns(t *testing.T) {
	for i := range classCount {
		if c := makeClass(i); c.size <= maxSharded {
			require.LessOrEqual(t, int(c.pages), minRun, "class %d", i)
		}
	}
}
