package txn

import (
	"sync/atomic"
	"unsafe"

	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/logstream"
)

// uncommitted marks the begin field of a version that has no CTS yet; the
// other bits name the owner.
const uncommitted = uint64(1) << 63

// beginOfOld is the CTS given to a version that comes online from the log: it
// is at or below the watermark, so its true CTS no longer matters.
const beginOfOld = 1

const headerBytes = 32

// Bits of the last header word, above which the schema version stands.
const (
	flagTombstone = uint32(1)
	flagTouched   = uint32(2) // used since the freezer last came by
	schemaShift   = 16
)

// version is the header of a row version in the arena. It is only ever a view
// of arena memory; the package documentation gives the layout and the rules.
type version struct {
	begin atomic.Uint64
	older atomic.Uint64
	log   atomic.Uint64
	size  uint32
	flags atomic.Uint32
}

// The header is a file-independent layout, but gc and checkpoints rely on its
// size; this fails to compile if the struct grows.
const _ = uint(headerBytes-unsafe.Sizeof(version{})) + uint(unsafe.Sizeof(version{})-headerBytes)

func versionAt(a *arena.Arena, r arena.Ref) *version {
	return (*version)(a.Pointer(r))
}

func (v *version) payload() []byte {
	if v.size == 0 { // what is behind the header may be behind the chunk
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(v), headerBytes)), int(v.size))
}

func (v *version) tombstone() bool { return v.flags.Load()&flagTombstone != 0 }

func (v *version) schema() uint16 { return uint16(v.flags.Load() >> schemaShift) }

// touch notes that the version is in use. It writes only if that is news, so that
// readers of a hot row share its cache line; and as all other bits are fixed once
// a version is linked, a plain store is enough.
func (v *version) touch() {
	if flags := v.flags.Load(); flags&flagTouched == 0 {
		v.flags.Store(flags | flagTouched)
	}
}

// untouch reports whether the version was touched since the last call.
func (v *version) untouch() bool {
	flags := v.flags.Load()
	if flags&flagTouched == 0 {
		return false
	}
	v.flags.Store(flags &^ flagTouched)
	return true
}

func (v *version) blockBytes() int { return headerBytes + int(v.size) }

func (v *version) olderWord() indirection.Word { return indirection.Word(v.older.Load()) }

func (v *version) address() logstream.Address { return logstream.Address(v.log.Load()) }

// initVersion makes a block of the right size a version that nobody can see
// yet. It begins touched, so that the freezer spares it for a round.
func initVersion(v *version, begin uint64, older indirection.Word, schema uint16, flags uint32, payload []byte) {
	v.begin.Store(begin)
	v.older.Store(uint64(older))
	v.log.Store(0)
	v.size = uint32(len(payload))
	v.flags.Store(uint32(schema)<<schemaShift | flags | flagTouched)
	copy(v.payload(), payload)
}
