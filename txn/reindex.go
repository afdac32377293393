package txn

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
)

// Reindex enters the rows of a table into an index which from now on gets all
// entries that transactions add or remove. Where the version that its snapshot
// sees is the newest one of a row, the entry's time as a suspect comes after the
// snapshot's end. Other versions may have gone by the time that their entry is
// made: it becomes a suspect at once.
func (m *Manager) Reindex(ctx context.Context, t *Table, number int, ix index.Index) error {
	m.reindexed.Store(true)
	s := m.acquire()
	defer s.release()
	s.owner, s.readCTS = uncommitted, s.register(m.Log.Durable)
	s.state.Store(s.generation<<generationAt | stateBusy) // not a transaction that Close would have to end
	return t.eachSlot(ctx, func(ordinals []uint64) error {
		for _, ordinal := range ordinals {
			if err := s.reindex(t, number, ordinal, ix); err != nil {
				return err
			}
		}
		return nil
	})
}

// reindex enters the versions of one row.
func (s *session) reindex(t *Table, number int, ordinal uint64, ix index.Index) error {
	s.h.Pin()
	defer s.h.Unpin()
	for {
		end, err := s.reindexChain(t, number, ordinal, ix)
		if err != nil || end == 0 {
			return err
		}
		payload, err := s.readLog(t, ordinal, end)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return err
		}
		return s.reindexPayload(t, number, ordinal, payload, ix)
	}
}

// reindexChain enters the versions in memory and returns the log address that
// they end with, 0 for none.
func (s *session) reindexChain(t *Table, number int, ordinal uint64, ix index.Index) (end indirection.Word, err error) {
	head, err := t.Rows.Load(ordinal)
	if err != nil {
		return 0, err
	}
	word := head
	for word != 0 && !word.IsLog() {
		v := versionAt(s.m.Arena, word.Ref())
		if !v.tombstone() {
			if err := s.reindexPayload(t, number, ordinal, v.payload(), ix); err != nil {
				return 0, err
			}
			if word != head || v.begin.Load() > s.readCTS { // true of uncommitted ones too
				s.m.Garbage.suspect(0, t.row(ordinal), number, s.key)
			}
		}
		word = v.olderWord()
	}
	return word, nil
}

func (s *session) reindexPayload(t *Table, number int, ordinal uint64, payload []byte, ix index.Index) error {
	s.key = t.Layout.AppendKey(s.key[:0], number, payload)
	return ix.Insert(s.h, s.key, t.row(ordinal), nil)
}
