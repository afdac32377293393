package txn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// Config is what a Manager stands on. All fields are required but Assist.
type Config struct {
	Arena      *arena.Arena
	Epochs     *epoch.Domain
	Log        *logstream.Log
	Durability logstream.Durability // of the database; a transaction may relax it
	MaxPart    int                  // bytes of records in one frame; a larger transaction is written in parts
	MaxRow     int                  // largest payload in bytes
	MaxRecord  int                  // most bytes that a row and its keys in all indexes take together
	ReadOnly   bool                 // every writable Begin fails with ErrReadOnly

	// Find returns the table with an id, for the collector. Nil result: the
	// table is gone and its garbage with it.
	Find func(id rowid.Table) *Table

	// Budget is how many bytes of memory the database should do with; rows leave
	// memory to that end. 0 = they never do.
	Budget int64

	// ColdReads, required with a budget, is called now and then while rows are read
	// from the log: such reads touch more and more of the mapped files.
	ColdReads func()

	// Relieve, if set, is called when a statement has met the memory limit, and
	// reports whether there is some more. Nothing is pinned or latched.
	Relieve func() bool

	// Trace says that it is noted where transactions begin.
	Trace bool

	// Assist, if set, is called before a transaction that may write begins, so
	// that writers help a collector that cannot keep up.
	Assist func()
}

// Manager begins transactions and knows the oldest snapshot. All methods are
// safe for concurrent use.
type Manager struct {
	Config
	Garbage Queue

	entered enteredKeys
	table   atomic.Pointer[sessionTable]
	grow    sync.Mutex
	watch   sync.Mutex    // guards what is seen of the sessions
	horizon atomic.Uint64 // published, see eachSnapshot
	closed  atomic.Bool
	owners  atomic.Uint64

	logged    atomic.Uint64
	commits   atomic.Uint64
	aborts    atomic.Uint64
	conflicts atomic.Uint64
	expired   atomic.Uint64

	recent        recentReads
	room          atomic.Bool
	muchRoom      atomic.Bool
	frozen        atomic.Uint64
	broughtOnline atomic.Uint64
	coldReads     atomic.Uint64
	reindexed     atomic.Bool // Reindex has been called
}

// NewManager returns a manager over a log that is ready to be written.
func NewManager(c Config) *Manager {
	m := &Manager{Config: c}
	m.table.Store(&sessionTable{})
	m.Garbage.init()
	if m.freezes() {
		m.recent.init(c.Budget)
	}
	return m
}

// Begin starts a transaction. A read-only one of a Sync database sees what is
// durable, any other what is visible. ctx is looked at once.
func (m *Manager) Begin(ctx context.Context, writable bool) (Tx, error) {
	if err := ctx.Err(); err != nil {
		return Tx{}, err
	}
	if writable {
		if err := m.writeRefused(); err != nil {
			return Tx{}, err
		}
	}
	s := m.acquire()
	if m.closed.Load() {
		s.release()
		return Tx{}, fault.ErrClosed
	}
	if m.Trace {
		s.origin.note()
	}
	if writable && m.Assist != nil {
		m.Assist() // Close waits for the claimed session
	}
	s.start(writable)
	return Tx{s: s, generation: s.generation}, nil
}

func (m *Manager) writeRefused() error {
	if m.ReadOnly {
		return fault.ErrReadOnly
	}
	if err := m.Log.Failed(); err != nil {
		return fmt.Errorf("%w: its log failed: %w", fault.ErrReadOnly, err)
	}
	return nil
}

// snapshotCTS is the CTS that a new snapshot may read at.
func (m *Manager) snapshotCTS(writable bool) uint64 {
	if m.Log.Failed() != nil {
		return m.Log.Durable()
	}
	if !writable && m.Durability.Mode == logstream.Sync {
		return m.Log.Durable()
	}
	return m.Log.Visible()
}

// Logged returns how many bytes of records transactions have put into the log
// since the manager was made.
func (m *Manager) Logged() uint64 { return m.logged.Load() }

// Counters are totals since the manager was made.
type Counters struct {
	Commits   uint64
	Aborts    uint64
	Conflicts uint64
	Expired   uint64 // ended by Watch
	Frozen    uint64 // rows that left memory for the log
	Online    uint64 // rows that came into memory from the log
	ColdReads uint64 // records read from the log for transactions
}

// Counters returns the totals.
func (m *Manager) Counters() Counters {
	return Counters{
		Commits:   m.commits.Load(),
		Aborts:    m.aborts.Load(),
		Conflicts: m.conflicts.Load(),
		Expired:   m.expired.Load(),
		Frozen:    m.frozen.Load(),
		Online:    m.broughtOnline.Load(),
		ColdReads: m.coldReads.Load(),
	}
}
