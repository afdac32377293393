package btree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// FuzzOperations takes its input as a list of changes, makes them to a tree of
// each kind and to the model, and validates the tree after every one.
//
//	byte 0: bit 0 remove, bits 1-3 row, bits 4-7 length of the key, 15 = long
//	then the key, one byte a byte; a long key is a byte and how often it comes
func FuzzOperations(f *testing.F) {
	f.Add([]byte("\x20ab\x10a\x00\x21ab"))
	f.Add([]byte("\xf0ab\xf0ac\xf0aa\xf2ab\xf1ab"))
	f.Add([]byte("\x30\x00\x00\x00\x20\x00\x00\x10\x00\x00\x11\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, kind := range kinds {
			r := newRig(t, kind.store)
			m := new(model)
			for rest := input; len(rest) > 0; {
				op := rest[0]
				var e entry
				e.row = rowid.ID(op >> 1 & 7)
				e.key, rest = fuzzKey(int(op>>4), rest[1:])
				if op&1 == 0 {
					require.NoError(t, r.insert([]byte(e.key), e.row))
					m.insert(e)
				} else {
					require.Equal(t, m.remove(e), r.remove([]byte(e.key), e.row))
				}
				r.validate()
			}
			requireSame(t, m.list, r.scan(index.Range{}))
		}
	})
}

func fuzzKey(length int, input []byte) (string, []byte) {
	length = min(length, len(input))
	if length < 2 || length < 15 {
		return string(input[:length]), input[length:]
	}
	key := make([]byte, 16*int(input[1]))
	for i := range key {
		key[i] = input[0]
	}
	return string(key), input[2:]
}
