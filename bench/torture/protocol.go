package torture

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// Phase is what a child is doing, apart from its clients' transactions.
type Phase string

// The phases.
const (
	Starting      Phase = "starting" // the process is there, the call of Open is not
	Opening       Phase = "opening"
	Running       Phase = "running"
	Checkpointing Phase = "checkpoint"
	Compacting    Phase = "compaction"
	Verifying     Phase = "verification" // beside the clients
	Converting    Phase = "conversion"   // to another index strategy, instead of clients
	Closing       Phase = "closing"
	Closed        Phase = "closed"
)

// Ack is one transaction that was acknowledged to a client.
type Ack struct {
	Client   int32          `json:"c"`
	Number   int64          `json:"n,omitempty"` // of the client's transactions, with counters
	Receipts []tpcc.Receipt `json:"r,omitempty"` // with TPC-C
}

// Work is what the engine did in the background.
type Work struct {
	Checkpoints int64 `json:"checkpoints,omitempty"`
	Segments    int64 `json:"segments,omitempty"` // removed
	Moved       int64 `json:"moved,omitempty"`    // rows, by compaction
	Frozen      int64 `json:"frozen,omitempty"`   // rows
}

func (w *Work) add(more Work) {
	w.Checkpoints += more.Checkpoints
	w.Segments += more.Segments
	w.Moved += more.Moved
	w.Frozen += more.Frozen
}

// Settle is a word about waiting for the disk.
type Settle string

// A child begins to wait for all that is committed, and has done so. Only one
// wait runs at a time.
const (
	settleBegin Settle = "begin"
	settleEnd   Settle = "end"
)

// message is one line from the child. It has one of these.
type message struct {
	Phase  Phase  `json:"p,omitempty"`
	Step   string `json:"s,omitempty"` // of Opening, as Open reports its progress
	Ack    *Ack   `json:"a,omitempty"`
	Settle Settle `json:"d,omitempty"`
	Work   *Work  `json:"w,omitempty"`
}

// teller writes messages, each in one write. Safe for concurrent use.
type teller struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newTeller(out io.Writer) *teller { return &teller{out: json.NewEncoder(out)} }

func (t *teller) tell(m message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Encode(m)
}

// phase tells the phase. Its error is that of a parent that is gone; then this
// process is about to go too.
func (t *teller) phase(p Phase) { _ = t.tell(message{Phase: p}) }
