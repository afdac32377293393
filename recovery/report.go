package recovery

import "time"

// Report says what an Open found and did.
type Report struct {
	Created         bool     // the directory held no database
	Strategy        string   // how its indexes come back
	Checkpoint      uint64   // number of the checkpoint used, 0 for none
	TSc             uint64   // the commit timestamp that it describes
	GroupsReplayed  int64    // transactions in the tail
	RecordsReplayed int64    // records in the tail
	TailBytes       int64    // bytes of log read for them
	BytesDropped    int64    // bytes behind the end of the log that were never acknowledged
	DropReason      string   // why they do not count
	Fallbacks       []string // what was damaged and what served instead
	TablesOpened    int
	IndexesMapped   int   // opened from their checkpoint
	IndexesRebuilt  int   // made anew by reading all rows
	EntriesReplayed int64 // index entries added from the tail
	RowsScanned     int64 // rows read to rebuild them
	Phases          []Phase
	Total           time.Duration
}

// Phase is a part of an Open and how long it took.
type Phase struct {
	Name     string
	Duration time.Duration
}

// Time runs one phase and notes its duration.
func (r *Report) Time(name string, phase func() error) error {
	start := time.Now()
	err := phase()
	took := time.Since(start)
	r.Phases = append(r.Phases, Phase{name, took})
	r.Total += took
	return err
}
