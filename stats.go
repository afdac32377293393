package rekindle

import (
	"runtime/metrics"
	"sync"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/recovery"
)

// Stats describes a database at one moment. Under concurrent work the figures
// need not belong to exactly the same one; each is exact when nothing runs,
// unless it says otherwise. Totals count from Open. Sizes are in bytes.
//
// The memory of a database is ArenaReserved, its part of GoReserved, and those
// pages of MappedBytes that the system keeps: they are clean always, because
// nothing is ever written through a mapping, so it can drop them at any time.
// The disk space is LogBytes + CheckpointBytes.
type Stats struct {
	VisibleCTS     uint64 // newest commit that transactions see
	DurableCTS     uint64 // newest commit that a crash cannot take back
	Watermark      uint64 // commits up to here have no older versions
	OldestSnapshot uint64 // of an open transaction or a running checkpoint; VisibleCTS if there is none
	CheckpointCTS  uint64 // what the newest checkpoint describes

	OldestSnapshotAge time.Duration // to within a second

	OpenTransactions int
	Commits          uint64 // that changed something
	Aborts           uint64 // that had changed something
	Conflicts        uint64 // statements refused with ErrConflict
	SnapshotsTooOld  uint64 // transactions ended for Options.MaxSnapshotAge

	LoggedBytes       uint64 // of records written by transactions, a total
	LogSegments       int    // files that hold records, or held them
	LogBytes          int64  // size of the log's files, with space prepared for records to come
	LogLiveBytes      int64  // of them, what the next Open needs: records that the newest checkpoint names, each up to an eighth too large, and all since
	LogDeadBytes      int64  // the others: overwritten and deleted rows, frames, prepared space
	CheckpointBytes   int64  // size of all files but the log's: checkpoints, one in the making too, and the manifest
	CompactedRows     int64  // moved by the compaction of the log, a total
	CompactedBytes    int64  // of records written for that, a total
	FreedSegments     int64  // segments of the log removed, a total
	CheckpointFailure error  // of the last checkpoint, nil if it worked

	GoHeap        int64 // objects on the Go heap of the whole process, with garbage not yet collected
	GoReserved    int64 // memory that the Go runtime of the process has and has not given back; GoHeap is part of it
	ArenaReserved int64 // memory outside of it taken from the system for rows, arrays and most indexes; what was not touched yet is not resident
	ArenaInUse    int64 // of it in blocks that hold something
	MappedBytes   int64 // size of the checkpoint files that are mapped for reading, a file mapped twice counted twice
	ArrayBytes    int64 // of it in pages of arrays, 512 rows each; others are read from checkpoint files
	IndexBytes    int64 // of indexes, approximate; part of ArenaInUse, with the rebuild strategy of GoHeap

	RowsFrozen uint64 // rows that left memory for the log, a total as the next two
	RowsOnline uint64 // rows that came into memory from the log
	ColdReads  uint64 // records of rows read from the log by transactions

	IndexEntries    int64 // garbage included
	RowIDs          int64 // row identities that are not free: rows, and deleted ones that the collector has not reached. Those that were free at Open count until they are looked up in the background, some until a later Open
	RowIDHighWater  int64 // row identities ever used, in all tables: what the arrays have room for
	GarbageQueued   int   // pieces of garbage: held ones, and those that the collector has not got to or lacks memory for
	GarbageHeld     int   // of them, those that open snapshots still see
	OldVersions     int   // row versions behind newer ones; some that have just gone may be counted
	GarbageSuspects int   // of them, index entries that may be dangling
	GarbageFailed   int64 // pieces given up because of an error
	IndexRepairs    int64 // indexes that were found damaged in use and rebuilt
}

// Stats returns the present figures, on a closed database zeros. It reads
// counters and does no input or output, so it may be called often and from any
// goroutine.
func (db *DB) Stats() Stats {
	if db.enter() != nil {
		return Stats{}
	}
	defer db.leave()
	var s Stats
	db.transactionStats(&s)
	db.storageStats(&s)
	db.memoryStats(&s)
	db.tableStats(&s)
	return s
}

// OpenTransaction describes a transaction that has begun and not ended: whether it
// is Writable, its Age to within a second, how many Iterators are open. Its method
// Began says where it began, by the Stack, if Options.TraceTransactions is set.
type OpenTransaction = fault.OpenTransaction

// OpenTransactions describes the open transactions, oldest first: whoever holds
// back memory and disk space is among the first. On a closed database there are
// none.
func (db *DB) OpenTransactions() []OpenTransaction {
	if db.enter() != nil {
		return nil
	}
	defer db.leave()
	return db.manager.OpenTransactions(time.Now())
}

func (db *DB) transactionStats(s *Stats) {
	counters := db.manager.Counters()
	s.VisibleCTS = db.log.Visible()
	s.DurableCTS = db.log.Durable()
	s.Watermark = db.manager.Watermark()
	s.OldestSnapshot = s.VisibleCTS
	if oldest, age, ok := db.manager.OldestSnapshot(time.Now()); ok {
		s.OldestSnapshot, s.OldestSnapshotAge = oldest, age
	}
	s.OpenTransactions = db.manager.Open()
	s.Commits, s.Aborts, s.Conflicts = counters.Commits, counters.Aborts, counters.Conflicts
	s.SnapshotsTooOld = counters.Expired
}

func (db *DB) storageStats(s *Stats) {
	s.LoggedBytes = db.manager.Logged()
	s.LogSegments = len(db.log.Segments())
	if err := db.files.Survey(); err != nil { // not by Open, which would take longer by it
		db.opts.Logger.Warn("files not counted", "error", err)
	}
	s.LogBytes = db.files.Bytes(recovery.LogDir)
	s.CheckpointBytes = db.files.Total() - s.LogBytes
	live := db.state.LiveBytes()
	if db.checkpointer != nil {
		s.CheckpointCTS = db.checkpointer.NewestCTS()
		live = db.checkpointer.LiveBytes()
		compacted := db.checkpointer.Compacted()
		s.CompactedRows, s.CompactedBytes, s.FreedSegments = compacted.Rows, compacted.Bytes, compacted.Freed
	}
	s.LogLiveBytes = min(s.LogBytes, live+int64(s.LoggedBytes)-db.growth.covered.Load())
	s.LogDeadBytes = s.LogBytes - s.LogLiveBytes
	if failure := db.growth.failure.Load(); failure != nil {
		s.CheckpointFailure = *failure
	}
}

func (db *DB) memoryStats(s *Stats) {
	s.GoHeap, s.GoReserved = db.process.read()
	memory := db.arena.Stats()
	s.ArenaReserved, s.ArenaInUse = memory.Reserved, memory.InUse
	s.MappedBytes = db.files.Mapped()
}

func (db *DB) tableStats(s *Stats) {
	for _, t := range db.catalog.set.Load().byID {
		s.RowIDs += int64(t.IDs.InUse())
		s.RowIDHighWater += int64(t.IDs.HighWater() - 1)
		s.ArrayBytes += t.Rows.Bytes()
		for _, ix := range t.Indexes {
			x := ix.Stats()
			s.IndexEntries += x.Entries
			s.IndexBytes += x.Bytes
		}
	}
	counters := db.manager.Counters()
	s.RowsFrozen, s.RowsOnline, s.ColdReads = counters.Frozen, counters.Online, counters.ColdReads
	s.IndexRepairs = db.repairs.done.Load()
	garbage := db.collector.Stats()
	s.GarbageQueued, s.GarbageHeld, s.GarbageFailed = garbage.Backlog, garbage.Held, garbage.Failed
	s.OldVersions, s.GarbageSuspects = garbage.Versions, garbage.Suspects
}

// processMemory asks the Go runtime for its figures. It keeps the samples, so
// that asking again allocates nothing.
type processMemory struct {
	mu      sync.Mutex
	samples []metrics.Sample
}

// read returns the bytes of objects and those taken from the system and kept.
func (p *processMemory) read() (heap, reserved int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.samples == nil {
		p.samples = []metrics.Sample{
			{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/total:bytes"},
			{Name: "/memory/classes/heap/released:bytes"},
		}
	}
	metrics.Read(p.samples)
	value := func(i int) int64 { return int64(p.samples[i].Value.Uint64()) }
	return value(0), value(1) - value(2)
}
