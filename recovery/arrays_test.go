package recovery

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

func TestEffect(t *testing.T) {
	at, before := logstream.MakeAddress(0, 4096, 64), logstream.MakeAddress(1, 512, 64)
	origin := logstream.Origin{CTS: 3, Address: before}.AppendTo(nil)
	for _, tt := range []struct {
		record       logstream.Record
		word, onlyIf indirection.Word
		entries      bool
	}{
		{logstream.Record{Kind: logstream.Insert}, indirection.FromAddress(at), 0, true},
		{logstream.Record{Kind: logstream.Image}, indirection.FromAddress(at), 0, false},
		{logstream.Record{Kind: logstream.Image, Keys: make([]byte, 9)}, indirection.FromAddress(at), 0, true},
		{logstream.Record{Kind: logstream.Delete, Keys: make([]byte, 8)}, 0, 0, true},
		{logstream.Record{Kind: logstream.Relocation, Keys: origin}, indirection.FromAddress(at), indirection.FromAddress(before), false},
	} {
		word, onlyIf := effect(at, tt.record.Kind, tt.record.Origin())
		require.Equal(t, tt.word, word, tt.record.Kind)
		require.Equal(t, tt.onlyIf, onlyIf, tt.record.Kind)
		require.Equal(t, tt.entries, changesEntries(&tt.record), tt.record.Kind)
	}
}

// TestChangesOfRows: what is kept of the changes between two checkpoints has the
// effect of all of them, one after the other.
func TestChangesOfRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	someWord := func() indirection.Word {
		return indirection.FromAddress(logstream.MakeAddress(0, logstream.Position(8*rng.IntN(4)), 64))
	}
	for range 2000 {
		before, after := map[rowid.ID]indirection.Word{}, map[rowid.ID]indirection.Word{}
		var changes []change
		for ordinal := range uint64(3) {
			row := rowid.Make(1, ordinal)
			if rng.IntN(3) > 0 {
				before[row] = someWord()
			}
			after[row] = before[row]
			for range rng.IntN(6) {
				c := change{row: row, word: someWord(), order: len(changes)}
				switch rng.IntN(4) {
				case 0:
					c.word = 0
				case 1, 2:
					c.onlyIf = someWord()
				}
				changes = append(changes, c)
				if c.onlyIf == 0 || c.onlyIf == after[row] {
					after[row] = c.word
				}
			}
		}
		all := slices.Clone(changes)
		for kept := dropOverwritten(changes); len(kept) > 0; {
			n := countOfRow(kept)
			row := kept[0].row
			if kept[0].onlyIf == 0 { // then it does not matter what was there
				before[row] = someWord()
			}
			require.Equal(t, after[row], settle(before[row], kept[:n]), "%v", all)
			for _, c := range kept[1:n] {
				require.NotZero(t, c.onlyIf, "an earlier change is overwritten")
			}
			kept = kept[n:]
		}
	}
}
