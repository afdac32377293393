package rekindle

import (
	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/txn"
)

// Stats describes a database at one moment. Under concurrent work the figures
// need not belong to exactly the same one.
type Stats struct {
	VisibleCTS        uint64 // newest commit that transactions see
	DurableCTS        uint64 // newest commit that a crash cannot take back
	Watermark         uint64 // commits up to here have no older versions
	CheckpointCTS     uint64 // what the newest checkpoint describes
	OldestSnapshot    uint64 // of open transactions; VisibleCTS if there are none
	OpenTransactions  int
	Transactions      txn.Counters
	LoggedBytes       uint64 // written by transactions since Open
	LogSegments       int
	LogBytes          int64 // size of the segment files
	Memory            arena.Stats
	Garbage           gc.Stats
	Indexes           index.Stats // all indexes together
	CheckpointFailure error       // of the last checkpoint, nil if it worked
}

// Stats returns the present figures. On a closed database it returns zeros.
func (db *DB) Stats() Stats {
	db.closing.Lock()
	defer db.closing.Unlock()
	if db.closed.Load() {
		return Stats{}
	}
	s := Stats{
		VisibleCTS:       db.log.Visible(),
		DurableCTS:       db.log.Durable(),
		Watermark:        db.manager.Watermark(),
		OpenTransactions: db.manager.Open(),
		Transactions:     db.manager.Counters(),
		LoggedBytes:      db.manager.Logged(),
		Memory:           db.arena.Stats(),
		Garbage:          db.collector.Stats(),
	}
	s.OldestSnapshot = s.VisibleCTS
	if oldest, ok := db.manager.OldestSnapshot(); ok {
		s.OldestSnapshot = oldest
	}
	for _, segment := range db.log.Segments() {
		s.LogSegments++
		s.LogBytes += int64(segment.End - segment.First)
	}
	if db.checkpointer != nil {
		s.CheckpointCTS = db.checkpointer.NewestCTS()
	}
	for _, t := range db.catalog.tables() {
		for _, ix := range t.Indexes {
			x := ix.Stats()
			s.Indexes.Entries += x.Entries
			s.Indexes.Bytes += x.Bytes
			s.Indexes.Mapped += x.Mapped
		}
	}
	if failure := db.growth.failure.Load(); failure != nil {
		s.CheckpointFailure = *failure
	}
	return s
}
