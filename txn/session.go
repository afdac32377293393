package txn

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// The state word of a session: generation << 3 | expired | busy | active. One
// compare-and-swap enters an operation, and tells a transaction that has ended
// (other generation) from one that another goroutine is inside of. Busy without
// active is a session in use by a Pin. Expired is one whose transaction is ended
// for its age; when it is, expired alone waits for its owner to find out.
const (
	stateActive  = uint64(1)
	stateBusy    = uint64(2)
	stateExpired = uint64(4)
	generationAt = 3
)

// session is the reusable part of a transaction: epoch handle, snapshot slot
// and buffers. Sessions are kept for ever and found again by scanning, not
// through sync.Pool, because the collector of the Go runtime empties that and
// an epoch handle must not get lost.
type session struct {
	state    atomic.Uint64
	snapshot atomic.Uint64 // 0 none, pendingSnapshot, or a CTS
	_        [48]byte      // keeps neighbours' state words on other cache lines

	m *Manager
	h *epoch.Handle

	seen      sighting
	origin    *origin      // nil unless transactions are traced
	iterators atomic.Int32 // open ones

	// mu is held by every statement that writes and while the transaction
	// ends, so that a checkpoint can look at the write set.
	mu sync.Mutex

	generation uint64
	owner      uint64 // begin field of this transaction's versions
	readCTS    uint64
	writable   atomic.Bool // changed by start only
	durability logstream.Durability

	writes    []write
	moves     []move
	statement atomic.Uint64 // counts statements that changed something; iterators look at it from outside

	call    Call
	rows    []rowid.ID // candidates of a lookup
	row     []byte     // the row handed out by the last read
	base    []byte     // the row a statement replaces
	key     []byte
	oldKey  []byte
	pending []byte // old keys of all records, built at commit
	parts   []part // at commit: the write set cut into frames
	cold    []byte // record read from the log
	many    many
	spare   []*scanBuffers
	touched uint64 // keeps prefetching loads alive
	unique  uniqueCheck
	sweeper Sweeper
}

// write is one row that a transaction has changed: one entry however often.
type write struct {
	table   *Table
	ordinal uint64
	ref     arena.Ref        // own version at the head of the slot
	base    indirection.Word // committed head below it, 0 for an inserted row

	moved    int    // place + 1 in session.moves of its last move, 0 for none
	keyMask  uint64 // indexes in which this transaction gave the row a key
	keysFrom int    // at commit: old keys in session.pending
	keysTo   int
}

// Tx is a transaction at the level of row bytes. It is not safe for concurrent
// use: a second goroutine gets ErrTxBusy. After Commit or Rollback every
// method returns ErrTxDone.
type Tx struct {
	s          *session
	generation uint64
}

// Call is one operation under way on a transaction, with buffers for its
// arguments. Rows that its methods return are valid until the next one or
// Leave. While it lasts other uses of the transaction get ErrTxBusy.
type Call struct {
	s   *session
	Key []byte // for the caller, kept for the next call
	Row []byte
}

// Enter begins a call on a table; Leave ends it.
func (tx *Tx) Enter(t *Table) (*Call, error) {
	s, err := tx.enterTable(t)
	if err != nil {
		return nil, err
	}
	return &s.call, nil
}

// enterTable is enter for an operation on a table, whose references to memory
// would mean something else to the transaction of another database.
func (tx *Tx) enterTable(t *Table) (*session, error) {
	if t.Manager != tx.s.m {
		return nil, fmt.Errorf("%w: %s", fault.ErrForeignTable, t.Name())
	}
	return tx.enter()
}

// Leave ends the call.
func (c *Call) Leave() { c.s.leave() }

// enter claims the session for one operation.
func (tx *Tx) enter() (*session, error) {
	s := tx.s
	idle := tx.generation<<generationAt | stateActive
	if !s.state.CompareAndSwap(idle, idle|stateBusy) {
		return nil, tx.refusal()
	}
	if s.m.closed.Load() {
		s.leave()
		return nil, fault.ErrClosed
	}
	return s, nil
}

func (tx *Tx) refusal() error {
	if tx.s.m.closed.Load() {
		return fault.ErrClosed
	}
	state := tx.s.state.Load()
	switch {
	case state>>generationAt != tx.generation:
		return fault.ErrTxDone
	case state&stateExpired != 0:
		return fault.ErrSnapshotTooOld
	case state&stateActive != 0:
		return fault.ErrTxBusy
	}
	return fault.ErrTxDone
}

func (s *session) leave() {
	s.state.Store(s.generation<<generationAt | stateActive)
}

// start makes a claimed session a transaction and opens it for operations.
func (s *session) start(writable bool) {
	if s.writable.Load() != writable {
		s.writable.Store(writable)
	}
	s.durability = s.m.Durability
	s.readCTS = s.register(func() uint64 { return s.m.snapshotCTS(writable) })
	if writable {
		s.owner = uncommitted | s.m.owners.Add(1)
	} else {
		s.owner = uncommitted
	}
	s.leave()
}

// release ends the transaction: the snapshot no longer holds the watermark and
// the session may be claimed again.
func (s *session) release() {
	s.reset()
	s.state.Store(s.generation << generationAt)
}

// reset drops everything of the transaction but its claim of the session. Most
// transactions have changed nothing and iterate over nothing: a load costs less
// than a store.
func (s *session) reset() {
	s.snapshot.Store(0)
	if s.statement.Load() != 0 {
		s.statement.Store(0)
	}
	if s.iterators.Load() != 0 {
		s.iterators.Store(0)
	}
	s.unique = uniqueCheck{}
	s.many.ahead.rest()
	for _, b := range [...]*[]byte{&s.row, &s.base, &s.key, &s.pending, &s.cold, &s.call.Key, &s.call.Row} {
		if cap(*b) > keptBytes {
			*b = nil
		}
	}
}

// sessionChunk sessions are added at a time; chunks never move.
const sessionChunk = 64

type sessionTable struct {
	chunks []*[sessionChunk]session
}

func (t *sessionTable) at(i int) *session { return &t.chunks[i/sessionChunk][i%sessionChunk] }

func (t *sessionTable) len() int { return len(t.chunks) * sessionChunk }

// acquire claims a session: busy, active, and of a new generation. Goroutines
// start their search at different places, so that they do not fight for one.
func (m *Manager) acquire() *session {
	for {
		t := m.table.Load()
		n := t.len()
		for i, at := 0, stackHash(); i < n; i++ {
			if s := t.at((at + i) % n); s.claim() {
				if s.m == nil {
					s.equip(m)
				}
				return s
			}
		}
		m.addSessions(n)
	}
}

func (s *session) claim() bool {
	state := s.state.Load()
	if state&(stateActive|stateBusy|stateExpired) != 0 {
		return false
	}
	generation := state>>generationAt + 1
	if !s.state.CompareAndSwap(state, generation<<generationAt|stateActive|stateBusy) {
		return false
	}
	s.generation = generation
	return true
}

// addSessions grows the table unless somebody else has done so since it had
// the given length.
func (m *Manager) addSessions(length int) {
	m.grow.Lock()
	defer m.grow.Unlock()
	old := m.table.Load()
	if old.len() != length {
		return
	}
	chunk := new([sessionChunk]session)
	if m.Trace {
		for i := range chunk {
			chunk[i].origin = &origin{}
		}
	}
	m.table.Store(&sessionTable{chunks: append(append([]*[sessionChunk]session(nil), old.chunks...), chunk)})
}

// equip readies a session for its first use, after it was claimed. Most are never
// used: their memory and an epoch handle, which every advance looks at, would be for
// nothing.
func (s *session) equip(m *Manager) {
	s.m, s.call.s = m, s
	s.h = m.Epochs.Register()
}

// stackHash differs between goroutines that run at the same time and costs
// nothing: stacks are at least 2 KiB apart.
func stackHash() int {
	var here byte
	return int((uintptr(unsafe.Pointer(&here)) >> 11) & 0xFFFF)
}

// Close refuses all further operations, waits for those under way and rolls
// back what is open. It returns the transactions it ended, oldest first.
func (m *Manager) Close() []fault.OpenTransaction {
	if m.closed.Swap(true) {
		return nil
	}
	m.watch.Lock()
	defer m.watch.Unlock()
	var ended []fault.OpenTransaction
	t, now := m.table.Load(), time.Now()
	for i := range t.len() {
		if s := t.at(i); s.seize() {
			age, _, _ := s.sight(now)
			ended = append(ended, s.describe(age))
			s.abort()
		}
	}
	return oldestFirst(ended)
}

// seize claims an active session from its transaction, once the operation
// under way has ended. It returns false when there is none.
func (s *session) seize() bool {
	for {
		state := s.state.Load()
		if state&stateActive == 0 {
			return false
		}
		if state&stateBusy == 0 && s.state.CompareAndSwap(state, state|stateBusy) {
			return true
		}
		runtime.Gosched()
	}
}

// Open counts the transactions that have begun and not ended.
func (m *Manager) Open() int {
	open := 0
	t := m.table.Load()
	for i := range t.len() {
		if t.at(i).state.Load()&stateActive != 0 {
			open++
		}
	}
	return open
}
