package mirrorindex

import (
	"context"
	"encoding/binary"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/indextest"
)

var benchEntries = flag.Int("entries", 400_000, "entries of BenchmarkBuild")

func BenchmarkIndex(b *testing.B) { indextest.Benchmark(b, Strategy{}) }

// BenchmarkBuild makes the mirror of an index that was opened, to the moment
// when reads use it.
func BenchmarkBuild(b *testing.B) {
	r := newRig(b, 0)
	files := r.filledWith(*benchEntries, func(i int) string {
		return string(binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15))
	})
	for range b.N {
		x, err := Strategy{}.Open(context.Background(), r.spec, files)
		require.NoError(b, err)
		for !x.(*Index).Progress().Ready {
			time.Sleep(100 * time.Microsecond)
		}
		b.StopTimer()
		require.NoError(b, x.Close())
		r.spec.Domain.Reclaim()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*benchEntries), "ns/entry")
}
