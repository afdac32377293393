package txn

import "slices"

// pendingSnapshot says that a session is about to read the CTS of its
// snapshot.
const pendingSnapshot = ^uint64(0)

// register publishes the snapshot that read returns. The order of the three
// steps is the protocol of the package documentation.
func (s *session) register(read func() uint64) uint64 {
	s.snapshot.Store(pendingSnapshot)
	cts := read()
	s.snapshot.Store(cts + 1)
	return cts
}

// Snapshots are stored plus one, because 0 means "none" and CTS 0 is a valid
// snapshot of an empty database.

// Snapshots is a copy of the registered snapshots. The zero value is ready to be
// filled; one that is filled again reuses its memory.
type Snapshots struct {
	registered []uint64 // ascending, each once
	horizon    uint64
}

// Horizon is the CTS that every snapshot which is not in the copy is at or
// above, now and for ever.
func (s *Snapshots) Horizon() uint64 { return s.horizon }

// Has reports whether a snapshot is in the copy.
func (s *Snapshots) Has(cts uint64) bool {
	_, found := slices.BinarySearch(s.registered, cts)
	return found
}

// Within returns the oldest snapshot of the copy with from ≤ snapshot < to.
func (s *Snapshots) Within(from, to uint64) (cts uint64, ok bool) {
	i, _ := slices.BinarySearch(s.registered, from)
	if i == len(s.registered) || s.registered[i] >= to {
		return 0, false
	}
	return s.registered[i], true
}

// anyBelow reports whether a snapshot of the copy is older than cts.
func (s *Snapshots) anyBelow(cts uint64) bool {
	return len(s.registered) > 0 && s.registered[0] < cts
}

// Snapshots copies the registered snapshots into s.
func (m *Manager) Snapshots(s *Snapshots) {
	s.registered = s.registered[:0]
	s.horizon = m.eachSnapshot(func(cts uint64) { s.registered = append(s.registered, cts) })
	slices.Sort(s.registered)
	s.registered = slices.Compact(s.registered)
}

// Watermark returns the newest CTS below which no version, entry or file is
// needed by anyone. It never falls.
func (m *Manager) Watermark() uint64 {
	oldest := pendingSnapshot
	horizon := m.eachSnapshot(func(cts uint64) { oldest = min(oldest, cts) })
	return min(horizon, oldest)
}

// eachSnapshot calls f with every registered snapshot, then publishes and
// returns the horizon: the durable CTS from before the sessions were looked at,
// or, if one of them was pending, the last horizon published before.
func (m *Manager) eachSnapshot(f func(cts uint64)) (horizon uint64) {
	published := m.horizon.Load()
	horizon = m.Log.Durable()
	t := m.table.Load()
	for i := range t.len() {
		switch s := t.at(i).snapshot.Load(); s {
		case 0:
		case pendingSnapshot:
			horizon = min(horizon, published)
		default:
			f(s - 1)
		}
	}
	for published < horizon && !m.horizon.CompareAndSwap(published, horizon) {
		published = m.horizon.Load()
	}
	return horizon
}

// Pin is a registered snapshot without a transaction: what a checkpoint holds
// back the watermark with.
type Pin struct {
	s   *session
	CTS uint64
}

// PinSnapshot registers the CTS that read returns. Until Release nothing
// visible at it is reclaimed. read must return a CTS that is not below the
// durable one at the time of the call.
func (m *Manager) PinSnapshot(read func() (uint64, error)) (Pin, error) {
	s := m.acquire()
	var err error
	cts := s.register(func() (cts uint64) {
		cts, err = read()
		return cts
	})
	if err != nil {
		s.release()
		return Pin{}, err
	}
	s.readCTS = cts
	s.state.Store(s.generation<<generationAt | stateBusy) // no transaction that Close would have to end
	return Pin{s: s, CTS: cts}, nil
}

// Release lets the watermark pass.
func (p Pin) Release() { p.s.release() }
