package btree

import (
	"bytes"
	"testing"
)

// TestAscendingLongKeys fills leaves from the left with keys of which a prefix
// saves nothing, because they are kept out of line. A leaf that began with one of
// them has none, and gets one when it is split.
func TestAscendingLongKeys(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			r := newRig(t, kind.store)
			for n := range 500 {
				key := append(bytes.Repeat([]byte("long "), 90+n), byte(n))
				if len(key) > MaxKey {
					break
				}
				if err := r.insert(key, 1); err != nil {
					t.Fatal(err)
				}
			}
			r.validate()
		})
	}
}
