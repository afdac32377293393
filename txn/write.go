package txn

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/schema"
)

var (
	errRowInFlight = errors.New("another transaction is writing this row")
	errRowTooNew   = errors.New("the row was changed after this transaction's snapshot")
)

// move notes that a statement gave a row a new key in an index, for iterators
// that were open at the time. Index everyIndex stands for all of them. The moves
// of one row are linked from the last one backwards.
type move struct {
	index     int
	before    int // place + 1 in session.moves of the row's move before, 0 for none
	statement uint64
}

const everyIndex = -1

// movedSince reports whether v is this transaction's version of a row that got
// its key in the index after the given statement.
func (s *session) movedSince(v *version, index int, statement uint64) bool {
	if v.begin.Load() != s.owner || len(s.moves) == 0 {
		return false
	}
	for at := s.writes[v.log.Load()].moved; at != 0; at = s.moves[at-1].before {
		m := &s.moves[at-1]
		if m.statement <= statement {
			return false
		}
		if m.index == index || m.index == everyIndex {
			return true
		}
	}
	return false
}

// movedAgain reports whether a row had other keys in this transaction before.
func (s *session) movedAgain(w *write) bool {
	return w.moved != 0 && s.moves[w.moved-1].before != 0
}

func (s *session) noteMove(w *write, index int) {
	s.moves = append(s.moves, move{index, w.moved, s.statement.Load()})
	w.moved = len(s.moves)
}

// beginStatement starts a statement that changes rows.
func (s *session) beginStatement() error {
	if !s.writable.Load() {
		return fault.ErrTxReadOnly
	}
	s.mu.Lock()
	s.h.Pin()
	return nil
}

// shrinks says that a statement makes the database smaller, if not at once: it needs
// room for a version and for a row that it brings online.
func (s *session) shrinks() { s.h.SetPriority(arena.Shrink) }

func (s *session) endStatement() {
	s.h.SetPriority(arena.Growth)
	s.h.Unpin()
	s.mu.Unlock()
}

// reliefs bounds how often a statement is tried again that has met the memory
// limit.
const reliefs = 3

// relieved reports whether a statement that ended with err should be tried again:
// it has met the memory limit, and cold rows have been frozen since. What is gained
// by that need not be of the size that is wanted, nor get to this one. Nothing found
// says little the first time: others may have made all the room meanwhile.
func (s *session) relieved(err error, tried int) bool {
	if !errors.Is(err, fault.ErrMemoryLimit) || tried >= reliefs || s.m.Relieve == nil {
		return false
	}
	return s.m.Relieve() || tried == 0
}

// Insert adds a row. ErrDuplicateKey if a unique key of it is taken; the
// transaction goes on as if the statement had not been.
func (c *Call) Insert(t *Table, row []byte) error {
	err := c.s.insertOnce(t, row)
	for tried := 0; c.s.relieved(err, tried); tried++ {
		err = c.s.insertOnce(t, row)
	}
	return err
}

func (s *session) insertOnce(t *Table, row []byte) error {
	if err := s.beginStatement(); err != nil {
		return err
	}
	defer s.endStatement()
	return s.insert(t, row)
}

// Update replaces the row that has the primary key of row. found is false if
// there is none.
func (c *Call) Update(t *Table, row []byte) (found bool, err error) {
	found, err = c.s.updateOnce(t, row)
	for tried := 0; c.s.relieved(err, tried); tried++ {
		found, err = c.s.updateOnce(t, row)
	}
	return found, err
}

func (s *session) updateOnce(t *Table, row []byte) (found bool, err error) {
	if err := s.beginStatement(); err != nil {
		return false, err
	}
	defer s.endStatement()
	return s.update(t, row)
}

// Upsert replaces the row with the primary key of row, or adds it.
func (c *Call) Upsert(t *Table, row []byte) error {
	err := c.s.upsertOnce(t, row)
	for tried := 0; c.s.relieved(err, tried); tried++ {
		err = c.s.upsertOnce(t, row)
	}
	return err
}

func (s *session) upsertOnce(t *Table, row []byte) error {
	if err := s.beginStatement(); err != nil {
		return err
	}
	defer s.endStatement()
	if found, err := s.update(t, row); found || err != nil {
		return err
	}
	return s.insert(t, row)
}

// Delete removes the row with an encoded primary key. found is false if there
// is none.
func (c *Call) Delete(t *Table, key []byte) (found bool, err error) {
	found, err = c.s.deleteOnce(t, key)
	for tried := 0; c.s.relieved(err, tried); tried++ {
		found, err = c.s.deleteOnce(t, key)
	}
	return found, err
}

func (s *session) deleteOnce(t *Table, key []byte) (found bool, err error) {
	if err := s.beginStatement(); err != nil {
		return false, err
	}
	defer s.endStatement()
	s.shrinks()
	ordinal, found, err := s.locate(t, 0, key)
	if !found || err != nil {
		return false, err
	}
	return true, s.replace(t, ordinal, flagTombstone, nil)
}

// checkSize makes sure that the row fits and that any record about it will: a
// delete carries all its keys, an update those and another row.
func (s *session) checkSize(t *Table, row []byte) error {
	if len(row) > s.m.MaxRow {
		return &fault.TooLarge{Kind: fault.ErrRowTooLarge, Table: t.Name(), Size: len(row), Limit: s.m.MaxRow}
	}
	if len(row)+len(t.Indexes)*schema.MaxKeySize <= s.m.MaxRecord {
		return nil
	}
	size := len(row)
	for i := range t.Indexes {
		s.key = t.Layout.AppendKey(s.key[:0], i, row)
		size += len(s.key)
	}
	if size > s.m.MaxRecord {
		return &fault.TooLarge{Kind: fault.ErrRowTooLarge, Table: t.Name(), Size: size, Limit: s.m.MaxRecord}
	}
	return nil
}

func (s *session) insert(t *Table, row []byte) error {
	if err := s.checkSize(t, row); err != nil {
		return err
	}
	ordinal, ref, err := s.installNew(t, row)
	if err != nil {
		return err
	}
	for i := range t.Indexes {
		if err := s.enterKey(t, i, ordinal, row); err != nil {
			s.undoInsert(t, ordinal, ref, i)
			return err
		}
	}
	s.statement.Add(1)
	s.writes = append(s.writes, write{table: t, ordinal: ordinal, ref: ref, keyMask: t.allKeys()})
	s.noteMove(&s.writes[len(s.writes)-1], everyIndex)
	return nil
}

// installNew puts the first version of a row into a fresh slot.
func (s *session) installNew(t *Table, row []byte) (ordinal uint64, ref arena.Ref, err error) {
	if ordinal, err = t.IDs.Alloc(s.h.Shard()); err != nil {
		return 0, 0, err
	}
	if ref, err = s.install(t, ordinal, 0, len(s.writes), 0, row); err == nil {
		return ordinal, ref, nil
	}
	if err == errMoved {
		return 0, 0, fmt.Errorf("%w: table %s: fresh row %d is in use", fault.ErrCorrupt, t.Name(), ordinal)
	}
	t.IDs.Free(ordinal)
	return 0, 0, err
}

func (s *session) update(t *Table, row []byte) (found bool, err error) {
	if err := s.checkSize(t, row); err != nil {
		return false, err
	}
	s.key = t.Layout.AppendKey(s.key[:0], 0, row)
	ordinal, found, err := s.locate(t, 0, s.key)
	if !found || err != nil {
		return false, err
	}
	if len(row) < len(s.row) {
		s.shrinks()
	}
	return true, s.replace(t, ordinal, 0, row)
}

// install makes an uncommitted version over head, which it has to be in the
// slot: errMoved says that the slot holds something else by now. entry is the
// place of the row in the write set.
func (s *session) install(t *Table, ordinal uint64, head indirection.Word, entry int, flags uint32, row []byte) (arena.Ref, error) {
	ref, err := s.m.Arena.Alloc(s.h.Shard(), headerBytes+len(row))
	if err != nil {
		return 0, err
	}
	v := versionAt(s.m.Arena, ref)
	initVersion(v, s.owner, head, t.Version, flags, row)
	v.log.Store(uint64(entry))
	swapped, err := t.Rows.CompareAndSwap(s.h.Shard(), ordinal, head, indirection.FromRef(ref))
	if err == nil && !swapped {
		err = errMoved
	}
	if err != nil {
		s.m.Arena.Free(s.h.Shard(), ref, v.blockBytes())
		return 0, err
	}
	return ref, nil
}

// replace puts a new version (or a tombstone) over the row that locate has
// just found and left in s.row. A version of this transaction's own stays in the
// chain until the new one is settled: it may yet come back, and must be seen
// until then by those who ask whether a key is free or an entry dead.
func (s *session) replace(t *Table, ordinal uint64, flags uint32, row []byte) error {
	s.row, s.base = s.base, s.row // later reads of this statement must not overwrite the base
	for {
		head, own, err := s.writableHead(t, ordinal)
		if err != nil {
			return err
		}
		entry := len(s.writes)
		if own != nil {
			entry = int(own.log.Load())
		}
		ref, err := s.install(t, ordinal, head, entry, flags, row)
		if err == errMoved {
			continue
		}
		if err != nil {
			return err
		}
		return s.settle(t, ordinal, head, ref, entry, own)
	}
}

// writableHead returns the head of a slot if this transaction may write over
// it; own is set if the head is its own version.
func (s *session) writableHead(t *Table, ordinal uint64) (head indirection.Word, own *version, err error) {
	head, err = s.online(t, ordinal)
	if err != nil {
		return 0, nil, err
	}
	if head == 0 {
		return 0, nil, s.rowConflict(t, errRowTooNew)
	}
	v := versionAt(s.m.Arena, head.Ref())
	switch begin := v.begin.Load(); {
	case begin == s.owner:
		return head, v, nil
	case begin&uncommitted != 0:
		return 0, nil, s.rowConflict(t, errRowInFlight)
	case begin > s.readCTS:
		return 0, nil, s.rowConflict(t, errRowTooNew)
	}
	return head, nil, nil
}

// rowConflict names the row by the primary key of the version in s.base.
func (s *session) rowConflict(t *Table, reason error) error {
	s.key = t.Layout.AppendKey(s.key[:0], 0, s.base)
	return s.conflict(t, 0, s.key, reason)
}

// settle enters the new keys of a replaced row and notes it in the write set;
// if a key cannot be entered the replacement is taken back.
func (s *session) settle(t *Table, ordinal uint64, head indirection.Word, ref arena.Ref, entry int, own *version) error {
	v := versionAt(s.m.Arena, ref)
	var gained uint64
	if !v.tombstone() {
		var err error
		if gained, err = s.enterChangedKeys(t, ordinal, v.payload()); err != nil {
			s.undoReplace(t, ordinal, head, ref)
			return err
		}
	}
	s.statement.Add(1)
	if own == nil {
		s.writes = append(s.writes, write{table: t, ordinal: ordinal, base: head})
	} else {
		v.older.Store(own.older.Load())
		s.suspectChangedKeys(t, ordinal, v)
		s.h.Retire(head.Ref(), own.blockBytes())
	}
	w := &s.writes[entry]
	w.ref = ref
	w.keyMask |= gained
	for m := gained; m != 0; m &= m - 1 {
		s.noteMove(w, bits.TrailingZeros64(m))
	}
	return nil
}

// enterChangedKeys enters the keys of row that differ from those of s.base and
// returns the bitmap of the indexes it entered them in.
func (s *session) enterChangedKeys(t *Table, ordinal uint64, row []byte) (gained uint64, err error) {
	for i := 1; i < len(t.Indexes); i++ {
		if !s.keyChanged(t, i, s.base, row) {
			continue
		}
		if err := s.enterKey(t, i, ordinal, row); err != nil {
			return 0, err
		}
		gained |= 1 << uint(i)
	}
	return gained, nil
}

// keyChanged compares the keys of two rows and leaves that of the first in
// s.oldKey.
func (s *session) keyChanged(t *Table, number int, before, after []byte) bool {
	s.oldKey = t.Layout.AppendKey(s.oldKey[:0], number, before)
	return !t.Layout.KeyMatches(number, after, s.oldKey)
}

// enterKey enters a row under its key in one index.
func (s *session) enterKey(t *Table, number int, ordinal uint64, row []byte) error {
	s.key = t.Layout.AppendKey(s.key[:0], number, row)
	if err := schema.CheckKeySize(t.Schema, number, s.key); err != nil {
		return err
	}
	unique := t.Schema.Indexes[number].Unique && !t.Layout.KeyHasNull(number, row)
	return s.addEntry(t, number, s.key, t.row(ordinal), unique)
}

// suspectChangedKeys reports the keys of s.base, an earlier version of this
// transaction's own, that its successor does not have.
func (s *session) suspectChangedKeys(t *Table, ordinal uint64, next *version) {
	for i := range t.Indexes {
		s.oldKey = t.Layout.AppendKey(s.oldKey[:0], i, s.base)
		if next.tombstone() || !t.Layout.KeyMatches(i, next.payload(), s.oldKey) {
			s.m.Garbage.suspect(0, t.row(ordinal), i, s.oldKey)
		}
	}
}

// undoInsert takes back an insert that entered its row in the first n indexes. A
// Reindex may have entered it in others, and taken it for the one that has been
// undone before under the same ordinal.
func (s *session) undoInsert(t *Table, ordinal uint64, ref arena.Ref, n int) {
	s.swapBack(t, ordinal, ref, 0)
	entered := uint64(1)<<uint(n) - 1
	if s.m.reindexed.Load() {
		entered = t.allKeys()
	}
	s.freeRow(t, ordinal, s.dropKeys(t, ordinal, ref, entered))
}

// freeRow gives back the ordinal of a row that has never been committed: at
// once if it has left neither entries nor suspects, else behind its suspects. The
// suspects of an ordinal in use are those of its present row.
func (s *session) freeRow(t *Table, ordinal uint64, clean bool) {
	if clean {
		t.IDs.Free(ordinal)
	} else {
		s.m.Garbage.free(0, t.row(ordinal))
	}
}

// undoReplace takes back a replacement. All its keys are looked at, not only
// those that were entered: a suspect may have been found in use meanwhile
// because of the version that goes.
func (s *session) undoReplace(t *Table, ordinal uint64, head indirection.Word, ref arena.Ref) {
	s.swapBack(t, ordinal, ref, head)
	s.dropKeys(t, ordinal, ref, t.allKeys())
}

// swapBack takes this transaction's version off its slot. Nobody else may
// touch the slot while that version is its head, so the swap cannot fail but
// for an error of the array, which has shown the very page before.
func (s *session) swapBack(t *Table, ordinal uint64, ref arena.Ref, head indirection.Word) {
	swapped, err := t.Rows.CompareAndSwap(s.h.Shard(), ordinal, indirection.FromRef(ref), head)
	if invariants.Enabled && (!swapped || err != nil) {
		invariants.Fail("table %s, row %d: own version is not the head: %v", t.Name(), ordinal, err)
	}
	s.h.Retire(ref, versionAt(s.m.Arena, ref).blockBytes())
}

// dropKeys removes the entries that a version which is no longer in its slot has
// left in the indexes of a bitmap. The version is retired but, under the present
// pin, still readable. It returns false if some were left to the collector.
func (s *session) dropKeys(t *Table, ordinal uint64, ref arena.Ref, mask uint64) (clean bool) {
	clean = true
	v := versionAt(s.m.Arena, ref)
	if v.tombstone() {
		return true
	}
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros64(mask)
		s.oldKey = t.Layout.AppendKey(s.oldKey[:0], i, v.payload())
		clean = s.drop(t, ordinal, i, s.oldKey) && clean
	}
	return clean
}
