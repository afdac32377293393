package logstream

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	o := Options{FS: vfs.NewMem(), Dir: "db/log", DatabaseID: [16]byte{1}, SegmentBytes: 64 << 10}
	l, err := Open(o, Start{})
	require.NoError(t, err)
	var addrs []Address
	for i := range 2000 {
		payload := []byte(fmt.Sprintf("row %d", i))
		tk, err := l.Reserve(ctx, Request{Bytes: FrameBytes(RecordBytes(0, len(payload)))})
		require.NoError(t, err)
		e := l.Encode(&tk)
		addrs = append(addrs, e.Append(Insert, rowid.Make(1, uint64(i)), 0, nil, payload))
		e.Finish()
		l.Publish(tk)
		require.NoError(t, l.Acknowledge(ctx, tk, true))
	}
	for i, a := range addrs {
		r, _, err := l.ReadAt(a, nil)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("row %d", i), string(r.Payload))
	}
	n := 0
	tail, err := Scan(ctx, ScanOptions{FS: o.FS, Dir: o.Dir, DatabaseID: o.DatabaseID, SegmentBytes: o.SegmentBytes}, func(g *Group) error {
		return g.Records(func(a Address, r Record) error {
			require.Equal(t, addrs[n], a)
			n++
			return nil
		})
	})
	require.NoError(t, err)
	require.Equal(t, 2000, n)
	t.Logf("%+v", tail)
	require.NoError(t, l.Close(ctx))
}
