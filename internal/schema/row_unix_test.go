//go:build unix

package schema_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/schema"
)

// TestRowTooLarge has one byte too many. The bytes are a mapping that is never
// touched, so the gigabyte costs neither memory nor time.
func TestRowTooLarge(t *testing.T) {
	type row struct {
		ID int64 `rekindle:",pk"`
		B  []byte
	}
	const fixed = 2 + 8 + 4
	big, err := syscall.Mmap(-1, 0, schema.MaxRowSize-fixed+1, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(big)) }()
	_, m := mapOf[row](t)
	want := &fault.TooLarge{Kind: fault.ErrRowTooLarge, Table: "t", Size: schema.MaxRowSize + 1, Limit: schema.MaxRowSize}

	out, err := m.Layout().AppendRow([]byte("kept"), []any{1, big})
	require.Equal(t, "kept", string(out))
	require.Equal(t, want, err)
	require.ErrorIs(t, err, fault.ErrRowTooLarge)

	out, err = m.AppendRow([]byte("kept"), unsafe.Pointer(&row{B: big}))
	require.Equal(t, "kept", string(out))
	require.Equal(t, want, err)
}
