package gc

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/txn"
)

// held keeps the garbage that old snapshots still see: one list for each, so
// that it is looked at again when that snapshot goes and not before. A piece is
// in a list once, however often it is found: what is held is bounded by the
// versions that the snapshots see, not by the commits since.
type held struct {
	lists map[uint64]*heldList
	count int
}

// heldList has no pointer per piece.
type heldList struct {
	pieces txn.GarbageList
	places map[uint64]int // hash of a piece → where it is in pieces
	hashed []byte
}

// add keeps g until the snapshot goes.
func (h *held) add(snapshot uint64, g txn.Garbage) {
	list := h.lists[snapshot]
	if list == nil {
		if h.lists == nil {
			h.lists = map[uint64]*heldList{}
		}
		list = &heldList{places: map[uint64]int{}}
		h.lists[snapshot] = list
	}
	if list.add(g) {
		h.count++
	}
}

// add returns false if the piece is there already. Of two pieces with the same
// hash the second one is not looked for, so it can be there more than once.
func (l *heldList) add(g txn.Garbage) bool {
	l.hashed = binary.LittleEndian.AppendUint64(l.hashed[:0], uint64(g.Row))
	l.hashed = append(l.hashed, byte(g.Kind), g.Index)
	l.hashed = append(l.hashed, g.Key...)
	hash := xxhash.Sum64(l.hashed)
	if at, ok := l.places[hash]; !ok {
		l.places[hash] = l.pieces.Len()
	} else if same(l.pieces.At(at), g) {
		return false
	}
	g.CTS = 0 // due when the list is
	l.pieces.Add(g)
	return true
}

func same(a, b txn.Garbage) bool {
	return a.Row == b.Row && a.Kind == b.Kind && a.Index == b.Index && bytes.Equal(a.Key, b.Key)
}

// release moves what is held for snapshots that are gone into due, that of the
// oldest first: a row's identity is held for the newest of the snapshots that
// its suspects are held for, and must come last.
func (h *held) release(present *txn.Snapshots, due *txn.GarbageList) {
	if h.count == 0 {
		return
	}
	for _, snapshot := range slices.Sorted(maps.Keys(h.lists)) {
		if present.Has(snapshot) {
			continue
		}
		pieces := &h.lists[snapshot].pieces
		h.count -= pieces.Len()
		due.Append(pieces)
		delete(h.lists, snapshot)
	}
}

// countKind returns the number of pieces of a kind.
func (h *held) countKind(kind txn.GarbageKind) (n int) {
	for _, list := range h.lists {
		n += list.pieces.Count(kind)
	}
	return n
}

// all calls f with each piece.
func (h *held) all(f func(txn.Garbage)) {
	for _, list := range h.lists {
		list.pieces.All(f)
	}
}
