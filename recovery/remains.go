package recovery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/rekindledb/rekindle/internal/fault"
)

// remains is what can be read of a manifest file.
type remains struct {
	Header      *Header // nil if it is lost
	Checkpoints []Checkpoint
	Flaws       []*fault.File
}

// maxRemainsBytes bounds a manifest file that is read as a whole.
const maxRemainsBytes = 256 << 20

// readRemains reads all records of a manifest file that are sound, also behind
// damage.
func readRemains(path string, data []byte) (r remains) {
	for at, least := 0, uint64(0); at < len(data); {
		body, end, sequence, ok := recordAt(data, at, least)
		if !ok {
			next := at + 1
			for next < len(data) && !soundRecord(data, next, least) {
				next++
			}
			r.flaw(path, at, next-at, "no manifest record")
			at = next
			continue
		}
		r.add(path, at, body, sequence)
		at, least = end, sequence+1
	}
	return r
}

// recordAt splits the record at a place. Its number is at least the given one.
func recordAt(data []byte, at int, least uint64) (body []byte, end int, sequence uint64, ok bool) {
	rest := data[at:]
	if len(rest) < recordHeader || binary.LittleEndian.Uint32(rest) != manifestMagic {
		return nil, 0, 0, false
	}
	sequence = binary.LittleEndian.Uint64(rest[16:])
	r := recordReader{file: bytes.NewReader(rest), size: int64(len(rest)), sequence: sequence}
	body, ok, err := r.next()
	return body, at + int(r.at), sequence, ok && err == nil && sequence >= least
}

func soundRecord(data []byte, at int, least uint64) bool {
	_, _, _, ok := recordAt(data, at, least)
	return ok
}

func (r *remains) flaw(path string, at, length int, reason string) {
	r.Flaws = append(r.Flaws, &fault.File{Kind: fault.ErrCorrupt, Path: path, Offset: int64(at), Length: int64(length), Reason: reason})
}

// add takes a record whose checksum is right.
func (r *remains) add(path string, at int, body []byte, sequence uint64) {
	var err error
	if sequence == 0 {
		var h Header
		if err = json.Unmarshal(body, &h); err == nil {
			err = h.validate(path)
		}
		if err == nil {
			r.Header = &h
		}
	} else {
		var c Checkpoint
		if err = decodeStrictly(body, &c); err == nil && r.Header != nil {
			err = c.sound(&Manifest{Header: *r.Header, Checkpoints: r.Checkpoints})
		}
		if err == nil {
			r.Checkpoints = append(r.Checkpoints, c)
		}
	}
	if err != nil {
		r.flaw(path, at, recordHeader+len(body), err.Error())
	}
}
