package rowid

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDRoundTrip(t *testing.T) {
	tests := []struct {
		table   Table
		ordinal uint64
		text    string
		bits    uint64
	}{
		{0, 1, "0:1", 1},
		{1, 1, "1:1", 1<<48 | 1},
		{7, 65536, "7:65536", 7<<48 | 65536},
		{65535, MaxOrdinal, "65535:281474976710655", 1<<64 - 1},
	}
	for _, tt := range tests {
		id := Make(tt.table, tt.ordinal)
		require.Equal(t, tt.bits, uint64(id))
		require.Equal(t, tt.table, id.Table())
		require.Equal(t, tt.ordinal, id.Ordinal())
		require.Equal(t, tt.text, id.String())
	}
}
