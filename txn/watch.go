package txn

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rekindledb/rekindle/internal/fault"
)

// sighting says when the present transaction of a session was first seen. Ages
// count from there, so that a transaction need not look at the clock. Guarded
// by Manager.watch.
type sighting struct {
	generation uint64
	at         time.Time
}

// sight returns for how long the session has been seen with this snapshot, and
// the state it was found in; open is false if there is no snapshot.
func (s *session) sight(now time.Time) (age time.Duration, state uint64, open bool) {
	state = s.state.Load()
	if state&(stateActive|stateBusy) == 0 || s.snapshot.Load() == 0 {
		return 0, state, false
	}
	if generation := state >> generationAt; s.seen.generation != generation {
		s.seen = sighting{generation, now}
	}
	return now.Sub(s.seen.at), state, true
}

// Watch looks at the open transactions and ends those that it has seen for
// longer than limit, unless they are inside a call: every further call of theirs
// returns ErrSnapshotTooOld. 0 means no limit. It returns how many it ended.
func (m *Manager) Watch(now time.Time, limit time.Duration) (ended int) {
	m.watch.Lock()
	defer m.watch.Unlock()
	t := m.table.Load()
	for i := range t.len() {
		s := t.at(i)
		age, state, open := s.sight(now)
		if open && limit > 0 && age > limit && s.expire(state) {
			ended++
		}
	}
	m.expired.Add(uint64(ended))
	return ended
}

// expire ends the transaction of a session that was idle in the given state.
func (s *session) expire(state uint64) bool {
	if state&stateBusy != 0 || !s.state.CompareAndSwap(state, state|stateBusy|stateExpired) {
		return false
	}
	s.undo()
	s.reset()
	s.state.Store(s.generation<<generationAt | stateExpired)
	return true
}

// acknowledge gives back the session of a transaction that was ended for its age
// and whose owner is being told so. It waits for the end if that is under way.
func (tx *Tx) acknowledge() {
	expired := tx.generation<<generationAt | stateExpired
	for {
		state := tx.s.state.Load()
		if state>>generationAt != tx.generation || state&stateExpired == 0 {
			return
		}
		if state == expired && tx.s.state.CompareAndSwap(state, tx.generation<<generationAt) {
			return
		}
		runtime.Gosched()
	}
}

// OldestSnapshot returns the oldest registered snapshot, be it of a transaction
// or a Pin, and for how long it has been seen; ok is false when there is none.
func (m *Manager) OldestSnapshot(now time.Time) (cts uint64, age time.Duration, ok bool) {
	m.watch.Lock()
	defer m.watch.Unlock()
	t := m.table.Load()
	for i := range t.len() {
		s := t.at(i)
		seen, _, open := s.sight(now)
		snapshot := s.snapshot.Load()
		if !open || snapshot == 0 || snapshot == pendingSnapshot {
			continue
		}
		if !ok || snapshot-1 < cts || snapshot-1 == cts && seen > age {
			cts, age, ok = snapshot-1, seen, true
		}
	}
	return cts, age, ok
}

// OpenTransactions describes the transactions that have begun and not ended,
// oldest first.
func (m *Manager) OpenTransactions(now time.Time) []fault.OpenTransaction {
	m.watch.Lock()
	defer m.watch.Unlock()
	var list []fault.OpenTransaction
	t := m.table.Load()
	for i := range t.len() {
		s := t.at(i)
		if age, state, open := s.sight(now); open && state&stateActive != 0 {
			list = append(list, s.describe(age))
		}
	}
	return oldestFirst(list)
}

func (s *session) describe(age time.Duration) fault.OpenTransaction {
	return fault.OpenTransaction{
		Writable:  s.writable.Load(),
		Age:       age,
		Iterators: int(s.iterators.Load()),
		Stack:     s.origin.stack(),
	}
}

func oldestFirst(list []fault.OpenTransaction) []fault.OpenTransaction {
	slices.SortStableFunc(list, func(a, b fault.OpenTransaction) int { return cmp.Compare(b.Age, a.Age) })
	return list
}

// origin is where the transaction of a session began.
type origin struct {
	mu  sync.Mutex
	pcs [originFrames]uintptr
	n   int
}

const originFrames = 32

// note remembers the callers of Begin.
func (o *origin) note() {
	o.mu.Lock()
	o.n = runtime.Callers(3, o.pcs[:])
	o.mu.Unlock()
}

// stack returns a copy, nil without tracing.
func (o *origin) stack() []uintptr {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.pcs[:o.n])
}
