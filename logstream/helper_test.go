package logstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

var testID = [16]byte{'l', 'o', 'g', 's', 't', 'r', 'e', 'a', 'm', 15: 1}

// newMem is a file system with the directory of a database.
func newMem(t testing.TB) *vfs.Mem {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	require.NoError(t, mem.SyncDir("."))
	return mem
}

func testOptions(fsys vfs.FS, streams int) Options {
	return Options{FS: fsys, Dir: "db/log", DatabaseID: testID, Streams: streams, SegmentBytes: MinSegmentBytes, MaxUnflushed: 64 << 10}
}

func scanOptions(o Options) ScanOptions {
	return ScanOptions{FS: o.FS, Dir: o.Dir, DatabaseID: o.DatabaseID, Streams: o.Streams, SegmentBytes: o.SegmentBytes}
}

// job is a transaction of a test. All of its content follows from its number,
// so that a scan can check what it finds.
type job struct {
	id    uint64
	parts int
	size  int // of its payloads, at most
}

func makeJob(id uint64) job {
	rng := rand.New(rand.NewPCG(id, 1))
	j := job{id: id, parts: 1, size: 1 << rng.IntN(12)}
	if rng.IntN(12) == 0 {
		j.parts = 2 + rng.IntN(3)
	}
	return j
}

// records are the records of part p.
func (j job) records(p int) []Record {
	rng := rand.New(rand.NewPCG(j.id, uint64(p)<<32))
	list := make([]Record, 1+rng.IntN(4))
	for i := range list {
		r := Record{Kind: []Kind{Insert, Image, Delete, Relocation}[rng.IntN(4)], Schema: uint16(j.id), Row: rowid.Make(rowid.Table(p), j.id)}
		switch r.Kind {
		case Relocation:
			r.Keys = Origin{CTS: 1 + rng.Uint64N(MaxCTS), Address: MakeAddress(rng.IntN(2), Position(8*rng.IntN(1000)), 64)}.AppendTo(nil)
		case Image, Delete:
			key := fmt.Sprintf("key %d", rng.IntN(1000))
			r.Keys = binary.LittleEndian.AppendUint64(nil, 1)
			r.Keys = append(binary.AppendUvarint(r.Keys, uint64(len(key))), key...)
		}
		if r.Kind != Delete {
			r.Payload = make([]byte, rng.IntN(j.size+1))
			for k := range r.Payload {
				r.Payload[k] = byte(rng.Uint32())
			}
		}
		list[i] = r
	}
	return list
}

// all are the records of all parts.
func (j job) all() (list []Record) {
	for p := range j.parts {
		list = append(list, j.records(p)...)
	}
	return list
}

// history is what a test has committed: by CTS, and how far it was promised.
type history struct {
	mu        sync.Mutex
	nextID    uint64
	jobs      map[uint64]job // by CTS of the last part
	addresses map[uint64][]Address
	promised  uint64
}

func newHistory() *history {
	return &history{jobs: make(map[uint64]job), addresses: make(map[uint64][]Address)}
}

func (h *history) newJob() job {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	return makeJob(h.nextID)
}

func (h *history) note(cts uint64, j job, a []Address) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs[cts], h.addresses[cts] = j, a
}

func (h *history) promise(cts uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.promised = max(h.promised, cts)
}

// copy is the history at this moment.
func (h *history) copy() *history {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := newHistory()
	c.nextID, c.promised = h.nextID, h.promised
	for cts, j := range h.jobs {
		c.jobs[cts], c.addresses[cts] = j, h.addresses[cts]
	}
	return c
}

// cut forgets what a crash took.
func (h *history) cut(last uint64) {
	for cts := range h.jobs {
		if cts > last {
			delete(h.jobs, cts)
			delete(h.addresses, cts)
		}
	}
}

// write reserves, encodes and publishes a frame.
func write(l *Log, r Request, records []Record) (Ticket, []Address, error) {
	n := 0
	for _, rec := range records {
		n += RecordBytes(len(rec.Keys), len(rec.Payload))
	}
	r.Bytes = FrameBytes(n)
	t, err := l.Reserve(context.Background(), r)
	if err != nil {
		return t, nil, err
	}
	var list []Address
	enc := l.Encode(&t)
	for _, rec := range records {
		list = append(list, enc.Append(rec.Kind, rec.Row, rec.Schema, rec.Keys, rec.Payload))
	}
	enc.Finish()
	return t, list, nil
}

// run writes a job up to its acknowledgement.
func (h *history) run(l *Log, j job, shard uint32, sync bool) error {
	var first uint64
	var all []Address
	for p := range j.parts {
		t, list, err := write(l, Request{Shard: shard, First: first, Part: p + 1, Parts: j.parts}, j.records(p))
		if err != nil {
			if first != 0 {
				l.AbandonGroup(first)
			}
			return err
		}
		if p == 0 && j.parts > 1 {
			first = t.CTS
		}
		all = append(all, list...)
		if p < j.parts-1 {
			l.Publish(t)
			continue
		}
		h.note(t.CTS, j, all)
		l.Publish(t)
		if err := l.Acknowledge(context.Background(), t, sync); err != nil {
			return err
		}
		if sync {
			h.promise(t.CTS)
		}
	}
	return nil
}

// abandon writes all parts of a job but the last.
func (h *history) abandon(l *Log, j job, shard uint32) error {
	var first uint64
	for p := range j.parts {
		t, _, err := write(l, Request{Shard: shard, First: first, Part: p + 1, Parts: j.parts + 1}, j.records(p))
		if err != nil {
			return err
		}
		if p == 0 {
			first = t.CTS
		}
		l.Publish(t)
	}
	l.AbandonGroup(first)
	return nil
}

// check scans the log: every group is one of the history, whole and in order,
// there is no gap, and nothing promised is missing.
func (h *history) check(t testing.TB, o Options) Tail {
	t.Helper()
	tail, err := h.scan(t, scanOptions(o))
	require.NoError(t, err)
	return tail
}

func (h *history) scan(t testing.TB, so ScanOptions) (Tail, error) {
	t.Helper()
	var found []uint64
	tail, err := Scan(context.Background(), so, func(g *Group) error {
		j, ok := h.jobs[g.CTS]
		require.True(t, ok, "unknown group with CTS %d", g.CTS)
		h.checkGroup(t, g, j)
		if len(found) > 0 {
			require.Greater(t, g.CTS, found[len(found)-1])
		}
		found = append(found, g.CTS)
		return nil
	})
	if err != nil {
		return tail, err
	}
	last := tail.NextCTS - 1
	expected := 0
	for cts := range h.jobs {
		if cts > so.AfterCTS && cts <= last {
			expected++
		}
	}
	require.Len(t, found, expected, "groups up to CTS %d", last)
	if so.UntilRound == 0 {
		require.GreaterOrEqual(t, last, h.promised)
	}
	return tail, nil
}

func (h *history) checkGroup(t testing.TB, g *Group, j job) {
	want, addresses := j.all(), h.addresses[g.CTS]
	i := 0
	require.NoError(t, g.Records(func(a Address, r Record) error {
		require.Less(t, i, len(want))
		requireRecord(t, want[i], r)
		if a != addresses[i] {
			require.Equal(t, addresses[i], a)
		}
		i++
		return nil
	}))
	require.Len(t, want, i)
}

func requireRecord(t testing.TB, want, got Record) {
	same := want.Kind == got.Kind && want.Row == got.Row && want.Schema == got.Schema &&
		bytes.Equal(want.Keys, got.Keys) && bytes.Equal(want.Payload, got.Payload)
	if !same {
		require.Equal(t, want, got)
	}
}

// recover is what opening a database does with its log.
func (h *history) recover(t testing.TB, o Options) *Log {
	t.Helper()
	tail := h.check(t, o)
	h.cut(tail.NextCTS - 1)
	require.NoError(t, Secure(o, tail))
	l, err := Open(o, tail.Start)
	require.NoError(t, err)
	return l
}

func openLog(t testing.TB, o Options, s Start) *Log {
	t.Helper()
	l, err := Open(o, s)
	require.NoError(t, err)
	return l
}

func closeLog(t testing.TB, l *Log) {
	t.Helper()
	require.NoError(t, l.Close(context.Background()))
}
