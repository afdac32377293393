package mapfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var errFault = errors.New("fault in the mapping")

// extent is a locator for one run of bytes.
type extent []byte

func (e extent) FaultAt(address uintptr) error {
	if address-uintptr(unsafe.Pointer(unsafe.SliceData(e))) < uintptr(len(e)) {
		return errFault
	}
	return nil
}

func readByte(e extent, at int) (b byte, err error) {
	defer mapfile.Catch(debug.SetPanicOnFault(true), e, &err)
	return e[at], nil
}

func TestCatchFault(t *testing.T) {
	if !vfs.MapsFiles || runtime.GOOS != "linux" {
		t.Skip("needs a mapping whose file can be cut")
	}
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("abc"), 0o600))
	m, err := vfs.OS().Map(name, 3)
	require.NoError(t, err)
	data := extent(m.Bytes())
	b, err := readByte(data, 1)
	require.NoError(t, err)
	require.EqualValues(t, 'b', b)
	require.NoError(t, os.Truncate(name, 0))
	_, err = readByte(data, 1)
	require.Equal(t, errFault, err)
	require.False(t, debug.SetPanicOnFault(false), "what was set before is set again")
	require.NoError(t, m.Close())
}

func TestCatchLeavesOtherPanics(t *testing.T) {
	require.PanicsWithValue(t, "mine", func() {
		var err error
		defer mapfile.Catch(false, extent(nil), &err)
		panic("mine")
	})
	require.Panics(t, func() { _, _ = readByte(extent("a"), 5) }, "an index out of range is a bug")
}

func TestCatchDoesNotAllocate(t *testing.T) {
	data := extent("abc")
	var l mapfile.Locator = data
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var err error
		defer mapfile.Catch(debug.SetPanicOnFault(true), l, &err)
	}))
}

func TestCheck(t *testing.T) {
	fs := vfs.NewMem()
	content := make([]byte, 3<<20+5)
	content[2<<20] = 1
	require.NoError(t, vfs.WriteFileAtomic(fs, "/f", content))
	size, sum := int64(len(content)), xxhash.Sum64(content)
	require.NoError(t, mapfile.Check(t.Context(), fs, "/f", size, sum))
	var file *fault.File
	require.ErrorAs(t, mapfile.Check(t.Context(), fs, "/f", size, sum+1), &file)
	require.ErrorAs(t, mapfile.Check(t.Context(), fs, "/f", size-1, sum), &file)
	require.Equal(t, "/f", file.Path)
	require.ErrorIs(t, mapfile.Check(t.Context(), fs, "/g", size, sum), os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, mapfile.Check(ctx, fs, "/f", size, sum), context.Canceled)
	require.Zero(t, fs.Handles())
}

// TestCheckHugeFile: a file that was made huge is read as far as it takes to see that
// it is longer than it should be.
func TestCheckHugeFile(t *testing.T) {
	const size, huge = 3<<20 + 5, 1 << 30
	fs := vfs.NewMem()
	f, err := fs.Create("/f")
	require.NoError(t, err)
	require.NoError(t, f.Truncate(huge))
	require.NoError(t, f.Close())
	var read int64
	counting := vfs.WithLog(fs, func(op vfs.Op) {
		if op.Kind == vfs.OpReadAt {
			read += op.Size
		}
	})
	require.ErrorIs(t, mapfile.Check(t.Context(), counting, "/f", size, 0), fault.ErrCorrupt)
	require.Less(t, read, int64(2*size))
	require.Zero(t, fs.Handles())
}
