package micro

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// CheckSystem checks that a system does what the benchmarks take for granted,
// and that it does so after a reopen and in both modes.
func CheckSystem(t *testing.T, s System) {
	const rows = 2500
	dir := t.TempDir()
	store, err := s.Open(dir, true)
	require.NoError(t, err)
	require.NoError(t, store.Load(Keys(rows)))
	checkStore(t, store, rows)
	require.NoError(t, store.Close())
	for _, durable := range []bool{false, true} {
		store, err = s.Open(dir, durable)
		require.NoError(t, err)
		checkStore(t, store, rows)
		if m, ok := store.(Measured); ok {
			require.NotEmpty(t, m.Memory())
			require.NotEmpty(t, m.Recovery())
		}
		require.NoError(t, store.Close())
	}
}

func checkStore(t *testing.T, store Store, rows int) {
	t.Helper()
	s, err := store.Session()
	require.NoError(t, err)
	last := uint64(rows - 1)
	for _, key := range []uint64{0, 1, 1000, last} {
		require.NoError(t, s.Read(key))
		require.NoError(t, s.Update(key, AppendValue(nil, key, 1)))
		require.NoError(t, s.Read(key))
	}
	require.NoError(t, s.ReadMany([]uint64{last, 0, 7}))
	for key, want := range map[uint64]int{0: 100, 1000: 100, last: 1, last - 9: 10, last + 1: 0} {
		n, err := s.Scan(key, 100)
		require.NoError(t, err)
		require.Equal(t, want, n, "scan from %d", key)
	}

	absent := uint64(rows)
	require.Error(t, s.Read(absent))
	require.Error(t, s.ReadMany([]uint64{0, absent}))
	require.NoError(t, s.Update(5, []byte("short")))
	require.Error(t, s.Read(5))
	_, err = s.Scan(4, 2)
	require.Error(t, err)
	require.NoError(t, s.Update(5, AppendValue(nil, 5, 0)))
	require.NoError(t, s.Close())
}
