package logstream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOldKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	dst := []byte("of another record")
	for range 200 {
		from, mask, want := len(dst), uint64(0), map[int]string{}
		for i := rng.IntN(3); i < 64; i += 1 + rng.IntN(20) {
			key := string(make([]byte, rng.IntN(300)))
			dst = AppendOldKey(dst, from, i, []byte(key))
			mask |= 1 << i
			want[i] = key
		}
		keys := OldKeys(dst[from:])
		indexes, err := keys.Indexes()
		require.NoError(t, err)
		require.Equal(t, mask, indexes)
		got := map[int]string{}
		require.NoError(t, keys.Each(func(i int, key []byte) { got[i] = string(key) }))
		require.Equal(t, want, got)
		for n := 1; n < len(keys); n++ {
			require.Error(t, keys[:n].Each(func(int, []byte) {}), "cut to %d bytes", n)
		}
	}
	require.NoError(t, OldKeys(nil).Each(func(int, []byte) { t.Fatal("a key of none") }))
}
