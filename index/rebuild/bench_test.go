package rebuild

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/btree"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/indextest"
	"github.com/rekindledb/rekindle/rowid"
)

func BenchmarkIndex(b *testing.B) { indextest.Benchmark(b, Strategy{}) }

const benchEntries = 1_000_000

// BenchmarkBareTree is what BenchmarkIndex/8B is to be held against: the tree
// of the library with the same comparison, without latch, pin and copies.
func BenchmarkBareTree(b *testing.B) {
	keys := make([][]byte, benchEntries)
	for i := range keys {
		keys[i] = binary.BigEndian.AppendUint64(nil, rand.Uint64())
	}
	entryOf := func(i int) entry { return view(keys[i%benchEntries], uint64(i%benchEntries+1)) }
	for _, degree := range []int{32, 64, 128} {
		tree := btree.NewG(degree, before)
		b.Run(fmt.Sprintf("degree-%d/insert", degree), func(b *testing.B) {
			for i := range b.N {
				if i%benchEntries == 0 {
					tree = btree.NewG(degree, before)
				}
				tree.ReplaceOrInsert(entryOf(i))
			}
		})
		for i := range keys {
			tree.ReplaceOrInsert(entryOf(i))
		}
		b.Run(fmt.Sprintf("degree-%d/lookup", degree), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				tree.Get(entryOf(i * 7919))
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	builder, err := Strategy{}.NewBuilder(index.Spec{})
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		require.NoError(b, builder.Add(fmt.Appendf(nil, "%08x", i), rowid.ID(i+1)))
	}
}
