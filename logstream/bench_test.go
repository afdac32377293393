package logstream

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

const benchPayload = 150

func benchLog(b *testing.B, d Durability) *Log {
	o := Options{FS: vfs.OS(), Dir: filepath.Join(b.TempDir(), "log"), DatabaseID: testID, Durability: d}
	l := openLog(b, o, Start{})
	b.Cleanup(func() { require.NoError(b, l.Close(context.Background())) })
	return l
}

func benchCommit(b *testing.B, l *Log, shard uint32, payload []byte, sync bool) {
	ctx := context.Background()
	t, err := l.Reserve(ctx, Request{Shard: shard, Bytes: FrameBytes(RecordBytes(0, len(payload)))})
	if err != nil {
		b.Error(err)
		return
	}
	enc := l.Encode(&t)
	enc.Append(Image, rowid.Make(1, t.CTS), 1, nil, payload)
	enc.Finish()
	l.Publish(t)
	if err := l.Acknowledge(ctx, t, sync); err != nil {
		b.Error(err)
	}
}

// BenchmarkCommitNoWait is Reserve, encode, Publish and the wait for
// visibility of one record.
func BenchmarkCommitNoWait(b *testing.B) {
	l := benchLog(b, Durability{Mode: None})
	payload := make([]byte, benchPayload)
	benchCommit(b, l, 0, payload, true)
	b.ReportAllocs()
	for b.Loop() {
		benchCommit(b, l, 0, payload, false)
	}
}

// BenchmarkCommitMemory is the same without a disk that is busy with it.
func BenchmarkCommitMemory(b *testing.B) {
	o := Options{FS: discardFS{vfs.NewMem()}, Dir: "log", DatabaseID: testID, Durability: Durability{Mode: None}}
	l := openLog(b, o, Start{})
	defer func() { require.NoError(b, l.Close(context.Background())) }()
	payload := make([]byte, benchPayload)
	b.ReportAllocs()
	for b.Loop() {
		benchCommit(b, l, 0, payload, false)
	}
}

// discardFS drops what is written.
type discardFS struct{ *vfs.Mem }

type discardFile struct{ vfs.File }

func (fs discardFS) Create(name string) (vfs.File, error) {
	f, err := fs.Mem.Create(name)
	return discardFile{f}, err
}

func (discardFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func (discardFile) Datasync() error { return nil }

func BenchmarkCommitDurable(b *testing.B) {
	for _, writers := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := benchLog(b, Durability{})
			payload := make([]byte, benchPayload)
			benchCommit(b, l, 0, payload, true)
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			for w := range writers {
				go func() {
					for left.Add(-1) >= 0 {
						benchCommit(b, l, uint32(w), payload, true)
					}
					done <- struct{}{}
				}()
			}
			for range writers {
				<-done
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(b.N)/float64(l.Stats().Rounds), "commits/round")
		})
	}
}

// bareFile is what a commit does at least: one sector written to prepared
// space, and fdatasync.
type bareFile struct {
	vfs.File
	buf [sectorBytes]byte
	at  int64
}

const bareBytes = 16 << 20

func openBare(b *testing.B) *bareFile {
	f, err := vfs.OS().Create(filepath.Join(b.TempDir(), "bare"))
	require.NoError(b, err)
	_, err = f.WriteAt(make([]byte, bareBytes), 0)
	require.NoError(b, err)
	require.NoError(b, f.Sync())
	b.Cleanup(func() { _ = f.Close() })
	return &bareFile{File: f}
}

func (f *bareFile) commit(b *testing.B) {
	f.buf[0]++
	_, err := f.WriteAt(f.buf[:], f.at%bareBytes)
	if err == nil {
		err = f.Datasync()
	}
	if err != nil {
		b.Fatal(err)
	}
	f.at += sectorBytes
}

func BenchmarkBareAppend(b *testing.B) {
	f := openBare(b)
	for b.Loop() {
		f.commit(b)
	}
}

// BenchmarkCommitAgainstBare alternates between the log and the bare file, so
// that both meet the same disk, and compares the medians.
func BenchmarkCommitAgainstBare(b *testing.B) {
	f, l := openBare(b), benchLog(b, Durability{})
	payload := make([]byte, benchPayload)
	benchCommit(b, l, 0, payload, true)
	var bare, log []time.Duration
	for b.Loop() {
		start := time.Now()
		f.commit(b)
		middle := time.Now()
		benchCommit(b, l, 0, payload, true)
		bare, log = append(bare, middle.Sub(start)), append(log, time.Since(middle))
	}
	slices.Sort(bare)
	slices.Sort(log)
	n := len(bare) / 2
	b.ReportMetric(float64(bare[n].Microseconds()), "bare-us")
	b.ReportMetric(float64(log[n].Microseconds()), "log-us")
	b.ReportMetric(100*float64(bare[n])/float64(log[n]), "%-of-bare")
}

func BenchmarkScan(b *testing.B) {
	for _, perFrame := range []int{1, 100} {
		b.Run(fmt.Sprintf("records=%d", perFrame), func(b *testing.B) {
			o := Options{FS: vfs.OS(), Dir: filepath.Join(b.TempDir(), "log"), DatabaseID: testID, Durability: Durability{Mode: None}}
			l := openLog(b, o, Start{})
			payload := make([]byte, benchPayload)
			const records = 200_000
			for range records / perFrame {
				t, err := l.Reserve(context.Background(), Request{Bytes: FrameBytes(perFrame * RecordBytes(0, len(payload)))})
				require.NoError(b, err)
				enc := l.Encode(&t)
				for i := range perFrame {
					enc.Append(Image, rowid.Make(1, uint64(i)), 1, nil, payload)
				}
				enc.Finish()
				l.Publish(t)
			}
			closeLog(b, l)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				_, err := Scan(context.Background(), scanOptions(o), func(g *Group) error {
					return g.Records(func(Address, Record) error { n++; return nil })
				})
				require.NoError(b, err)
				require.Equal(b, records, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
}

func BenchmarkReadAt(b *testing.B) {
	l := benchLog(b, Durability{Mode: None})
	payload := make([]byte, benchPayload)
	var list []Address
	for range 10_000 {
		t, a, err := write(l, Request{}, []Record{{Kind: Insert, Payload: payload}})
		require.NoError(b, err)
		l.Publish(t)
		list = append(list, a...)
	}
	require.NoError(b, l.Flush(context.Background()))
	b.Run("random", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for i := 0; b.Loop(); i++ {
			_, grown, err := l.ReadAt(list[i*7919%len(list)], buf)
			if err != nil {
				b.Fatal(err)
			}
			buf = grown
		}
	})
	b.Run("reader", func(b *testing.B) {
		b.ReportAllocs()
		r := NewReader(l)
		for i := 0; b.Loop(); i++ {
			if _, err := r.Read(list[i%len(list)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTornEnd is a scan that finds nothing new: its cost is the search
// behind the end.
func BenchmarkTornEnd(b *testing.B) {
	o := Options{FS: vfs.OS(), Dir: filepath.Join(b.TempDir(), "log"), DatabaseID: testID, Durability: Durability{Mode: None}}
	l := openLog(b, o, Start{})
	payload := make([]byte, benchPayload)
	for range 150_000 {
		benchCommit(b, l, 0, payload, false)
	}
	require.NoError(b, l.Flush(context.Background()))
	m, err := l.Mark(context.Background())
	require.NoError(b, err)
	closeLog(b, l)
	so := scanOptions(o)
	so.From, so.AfterCTS, so.AfterRound = m.Ends, m.CTS, m.Round
	for b.Loop() {
		_, err := Scan(context.Background(), so, func(*Group) error { return nil })
		require.NoError(b, err)
	}
}
