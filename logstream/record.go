package logstream

import (
	"fmt"

	"github.com/rekindledb/rekindle/rowid"
)

// Kind is what a record does to its row.
type Kind uint8

const (
	Insert Kind = 1 // a new row: the payload is its image
	Image  Kind = 2 // an update: the payload is the whole new row
	Delete Kind = 4 // the row ends: no payload
	// 3 (delta), 5 (relocated image) and 6 (extent reference) are reserved.
)

func (k Kind) String() string {
	switch k {
	case Insert:
		return "insert"
	case Image:
		return "image"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Record is one record of the log. Keys and Payload point into a buffer of
// whoever decoded it and share its lifetime.
type Record struct {
	Kind   Kind
	Schema uint16
	Row    rowid.ID
	// Keys are the old keys of the indexes that the record changes: a 64-bit
	// little-endian bitmap of the indexes, then per set bit, ascending, a
	// uvarint length and the key. Empty when there is none.
	Keys    []byte
	Payload []byte
}

// RecordBytes is the room that a record takes in its frame.
func RecordBytes(keys, payload int) int { return align8(recHeader + keys + payload) }

// FrameBytes is the size of a frame whose records take so many bytes in all.
func FrameBytes(records int) int { return frmHeader + records }
