package txn

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

// Watermark recomputes, publishes and returns the watermark: the newest CTS
// below which no version, entry or file is needed by anyone. It never falls.
func (m *Manager) Watermark() uint64 {
	published := m.watermark.Load()
	low := m.Log.Durable() // before the sessions are looked at
	t := m.table.Load()
	for i := range t.len() {
		switch s := t.at(i).snapshot.Load(); {
		case s == 0:
		case s == pendingSnapshot:
			low = min(low, published)
		default:
			low = min(low, s-1)
		}
	}
	for published < low && !m.watermark.CompareAndSwap(published, low) {
		published = m.watermark.Load()
	}
	return max(published, low)
}

// OldestSnapshot returns the oldest registered snapshot; ok is false when
// there is none.
func (m *Manager) OldestSnapshot() (cts uint64, ok bool) {
	t := m.table.Load()
	cts = pendingSnapshot
	for i := range t.len() {
		if s := t.at(i).snapshot.Load(); s != 0 && s != pendingSnapshot {
			cts, ok = min(cts, s-1), true
		}
	}
	return cts, ok
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
