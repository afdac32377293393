package chainindex

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// FuzzOpen opens damaged files: opening and reading end, with a typed error or
// with the entries.
func FuzzOpen(f *testing.F) {
	shared := newRigOn(f, vfs.NewMem(), "/")
	files, m := goldenChain(shared)
	for n, info := range files {
		for _, at := range []int{0, 12, 50, headerSize + 8, headerSize + 17, headerSize + 300, int(info.Size) - 30} {
			f.Add(n, uint32(at), uint16(0x0101), uint32(info.Size))
		}
		f.Add(n, uint32(0), uint16(0), uint32(info.Size-1))
	}
	intact := [][]byte{shared.read(files[0].Name), shared.read(files[1].Name)}
	h := shared.domain.Register()
	f.Fuzz(func(t *testing.T, n int, at uint32, change uint16, size uint32) {
		r := *shared
		r.t = t
		n &= 1
		content := slices.Clone(intact[n][:min(int(size), len(intact[n]))])
		if int(at)+2 <= len(content) {
			binary.LittleEndian.PutUint16(content[at:], binary.LittleEndian.Uint16(content[at:])^change)
		}
		r.replace(files[n].Name, content)
		defer r.replace(files[n].Name, intact[n])
		x, err := Open(context.Background(), r.spec, files)
		if err != nil {
			require.True(t, typed(err), "%v", err)
			return
		}
		defer r.domain.Reclaim()
		defer func() { require.NoError(t, x.Close()) }()
		s := &session{t, x, h}
		for _, rng := range []index.Range{{}, {Reverse: true}} {
			if got, err := s.tryScan(rng, 50); err != nil {
				require.True(t, typed(err), "%v", err)
			} else {
				require.True(t, slices.Equal(m.Behind(rng, &index.Cursor{}), got))
			}
		}
	})
}

// FuzzFooter decodes whatever it is given.
func FuzzFooter(f *testing.F) {
	footer := footer{nodes: 3, entries: 20, tombstones: 1, older: 6, olderSum: 99}
	f.Add(footer.append(nil, 5), int64(fileSize(3)))
	f.Add(make([]byte, footerSize), int64(footerSize))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		if len(b) < footerSize || size < int64(fileSize(1)) {
			t.Skip()
		}
		got, err := decodeFooter("f", b, 5, size)
		if err != nil {
			require.True(t, typed(err))
			return
		}
		require.EqualValues(t, size, fileSize(got.nodes))
		require.Equal(t, b[:footerSize], got.append(nil, 5))
	})
}
