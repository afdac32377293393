package recovery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/rekindledb/rekindle/internal/fault"
)

// remains is what can be read of a manifest file.
type remains struct {
	Path        string
	Header      *Header // nil if it is lost
	Checkpoints []Checkpoint
	Flaws       []*fault.File
}

// maxRemainsBytes bounds a manifest file that is read as a whole.
const maxRemainsBytes = 256 << 20

// readRemains reads all records of a manifest file that are sound, also behind
// damage.
func readRemains(path string, data []byte) (r remains) {
	r.Path = path
	in := recordReader{file: bytes.NewReader(data), size: int64(len(data))}
	for in.at < in.size {
		start, sequence := in.at, in.sequence
		body, ok, err := in.next()
		if ok {
			r.add(path, start, body, sequence)
			continue
		}
		if err == nil {
			ok, err = in.resync()
		}
		if err != nil || !ok {
			in.at = in.size
		}
		r.flaw(path, start, in.at-start, "no manifest record")
	}
	return r
}

// sectorBytes is what a power cut takes or leaves as a whole.
const sectorBytes = 512

// unfinished reports whether what follows the last sound record of a manifest file,
// at an offset, is a record that was being written: it is cut, or a sector of it has
// not come and holds zeros. A whole record has no such sector, because text has no
// zeros, and one that is only said to be longer has the whole text.
func unfinished(record []byte, at int64) bool {
	if len(record) < recordHeader {
		return true
	}
	if cut := int64(binary.LittleEndian.Uint32(record[4:])) > int64(len(record)-recordHeader); cut && !json.Valid(record[recordHeader:]) {
		return true
	}
	for len(record) > 0 {
		n := min(sectorBytes-int(at%sectorBytes), len(record))
		if len(bytes.Trim(record[:n], "\x00")) == 0 {
			return true
		}
		record, at = record[n:], at+int64(n)
	}
	return false
}

func (r *remains) flaw(path string, at, length int64, reason string) {
	r.Flaws = append(r.Flaws, &fault.File{Kind: fault.ErrCorrupt, Path: path, Offset: at, Length: length, Reason: reason})
}

// add takes a record whose checksum is right.
func (r *remains) add(path string, at int64, body []byte, sequence uint64) {
	var err error
	if sequence == 0 {
		var h Header
		if err = decodeHeader(body, &h); err == nil {
			err = h.validate(path)
		}
		if err == nil {
			r.Header = &h
		}
	} else {
		var c Checkpoint
		if err = decodeCheckpoint(body, &c); err == nil && r.Header != nil {
			err = c.sound(&Manifest{Header: *r.Header, Checkpoints: r.Checkpoints})
		}
		if err == nil {
			r.Checkpoints = append(r.Checkpoints, c)
		}
	}
	if err != nil {
		r.flaw(path, at, recordHeader+int64(len(body)), err.Error())
	}
}
