package peers

import (
	"os"
	"testing"

	"github.com/rekindledb/rekindle/bench/micro"
)

// all is Rekindle and its peers.
func all() []micro.System {
	return append([]micro.System{micro.Rekindle("rebuild")}, Systems()...)
}

func TestMain(m *testing.M) { os.Exit(micro.Main(m, all())) }

func BenchmarkStore(b *testing.B) { micro.Run(b, all()) }

func TestStores(t *testing.T) {
	for _, s := range all() {
		t.Run(s.Name, func(t *testing.T) { micro.CheckSystem(t, s) })
	}
}
