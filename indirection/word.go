package indirection

import (
	"fmt"

	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/logstream"
)

// Word is what a slot holds: where the row's newest version is.
//
//	0              empty
//	bit 63 clear   arena.Ref of a version in memory
//	bit 63 set     logstream.Address of a record
type Word uint64

const wordLog = 1 << 63

// FromRef makes the word of a version in memory; r must not be nil.
func FromRef(r arena.Ref) Word { return Word(r) }

// FromAddress makes the word of a record in the log; a must be valid.
func FromAddress(a logstream.Address) Word { return Word(a) }

// IsLog reports whether w names a record in the log.
func (w Word) IsLog() bool { return w&wordLog != 0 }

// IsRef reports whether w names a version in memory.
func (w Word) IsRef() bool { return w != 0 && w&wordLog == 0 }

// stored reports whether w can stand in a file: one that names memory cannot.
func (w Word) stored() bool { return w == 0 || w.IsLog() }

// Ref returns the version in memory that w names; only if IsRef.
func (w Word) Ref() arena.Ref { return arena.Ref(w) }

// Address returns the record that w names; only if IsLog.
func (w Word) Address() logstream.Address { return logstream.Address(w) }

func (w Word) String() string {
	switch {
	case w == 0:
		return "empty"
	case w.IsLog():
		return w.Address().String()
	}
	return fmt.Sprintf("memory %#x", uint64(w))
}
