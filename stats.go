package rekindle

// Stats describes a database at one moment. Under concurrent work the figures
// need not belong to exactly the same one. Totals count from Open.
type Stats struct {
	VisibleCTS     uint64 // newest commit that transactions see
	DurableCTS     uint64 // newest commit that a crash cannot take back
	Watermark      uint64 // commits up to here have no older versions
	OldestSnapshot uint64 // of an open transaction; VisibleCTS if there is none
	CheckpointCTS  uint64 // what the newest checkpoint describes

	OpenTransactions int
	Commits          uint64 // that changed something
	Aborts           uint64 // that had changed something
	Conflicts        uint64 // statements refused with ErrConflict

	LoggedBytes       uint64 // bytes of records written by transactions
	LogSegments       int
	LogBytes          int64 // size of the segments
	CheckpointFailure error // of the last checkpoint, nil if it worked

	ArenaReserved int64 // bytes of memory taken from the system for rows and arrays
	ArenaInUse    int64 // bytes of it that hold something
	IndexEntries  int64 // garbage included
	IndexBytes    int64 // approximate
	GarbageQueued int   // pieces waiting for the watermark or the collector
	GarbageFailed int64 // pieces given up because of an error
}

// Stats returns the present figures, on a closed database zeros.
func (db *DB) Stats() Stats {
	if db.enter() != nil {
		return Stats{}
	}
	defer db.leave()
	var s Stats
	db.transactionStats(&s)
	db.storageStats(&s)
	db.memoryStats(&s)
	return s
}

func (db *DB) transactionStats(s *Stats) {
	counters := db.manager.Counters()
	s.VisibleCTS = db.log.Visible()
	s.DurableCTS = db.log.Durable()
	s.Watermark = db.manager.Watermark()
	s.OldestSnapshot = s.VisibleCTS
	if oldest, ok := db.manager.OldestSnapshot(); ok {
		s.OldestSnapshot = oldest
	}
	s.OpenTransactions = db.manager.Open()
	s.Commits, s.Aborts, s.Conflicts = counters.Commits, counters.Aborts, counters.Conflicts
}

func (db *DB) storageStats(s *Stats) {
	s.LoggedBytes = db.manager.Logged()
	for _, segment := range db.log.Segments() {
		s.LogSegments++
		s.LogBytes += int64(segment.End - segment.First)
	}
	if db.checkpointer != nil {
		s.CheckpointCTS = db.checkpointer.NewestCTS()
	}
	if failure := db.growth.failure.Load(); failure != nil {
		s.CheckpointFailure = *failure
	}
}

func (db *DB) memoryStats(s *Stats) {
	memory := db.arena.Stats()
	s.ArenaReserved, s.ArenaInUse = memory.Reserved, memory.InUse
	for _, t := range db.catalog.tables() {
		for _, ix := range t.Indexes {
			x := ix.Stats()
			s.IndexEntries += x.Entries
			s.IndexBytes += x.Bytes
		}
	}
	garbage := db.collector.Stats()
	s.GarbageQueued, s.GarbageFailed = garbage.Backlog, garbage.Failed
}
