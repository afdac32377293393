package recovery

import (
	"encoding/binary"
	"fmt"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// A suspects file lists the index entries that were waiting for removal when a
// checkpoint was taken: without it they would stay in the index files for
// ever, because no later log record names them.
//
//	offset  size  field
//	     0     8  magic "RKSUSPCT"
//	     8     4  format version
//	    12     4  number of suspects
//	    16    16  database id
//	    32     -  suspects: u64 row | u8 index | u16 key length | key
//	   end     8  xxhash64 of everything before
const (
	suspectsMagic  = "RKSUSPCT"
	suspectsHeader = 32
	suspectBytes   = 8 + 1 + 2

	maxSuspectsBytes = 256 << 20
)

// suspectList builds the content of a suspects file.
type suspectList struct {
	data  []byte
	count uint32
}

func (l *suspectList) add(g txn.Garbage) {
	if l.data == nil {
		l.data = make([]byte, suspectsHeader)
	}
	l.data = binary.LittleEndian.AppendUint64(l.data, uint64(g.Row))
	l.data = append(l.data, g.Index)
	l.data = binary.LittleEndian.AppendUint16(l.data, uint16(len(g.Key)))
	l.data = append(l.data, g.Key...)
	l.count++
}

func (l *suspectList) finish(id ID) []byte {
	copy(l.data, suspectsMagic)
	binary.LittleEndian.PutUint32(l.data[8:], FormatVersion)
	binary.LittleEndian.PutUint32(l.data[12:], l.count)
	copy(l.data[16:], id[:])
	return binary.LittleEndian.AppendUint64(l.data, xxhash.Sum64(l.data))
}

// Suspects calls f with every suspect that the checkpoint recovered from has
// saved. Keys are valid during the call. Losing them does no harm but for the
// space of the entries.
func (s *State) Suspects(f func(txn.Garbage)) error {
	if s.base == nil || s.base.Suspects == nil || !s.Strategy.Persistent() {
		return nil
	}
	err := s.readSuspects(s.base.Suspects, f)
	if err != nil && damaged(err) {
		s.fallback(fmt.Sprintf("dead index entries stay behind: %v", err))
		return nil
	}
	return err
}

// readSuspects calls f with each suspect of a file.
func (s *State) readSuspects(info *FileInfo, f func(txn.Garbage)) error {
	path := s.path(filepath.FromSlash(info.Name))
	data, err := readSmall(s.cfg.FS, path, min(info.Size, maxSuspectsBytes))
	if err != nil {
		return err
	}
	if int64(len(data)) != info.Size || xxhash.Sum64(data) != info.Sum {
		return fault.Corrupt(path, 0, int64(len(data)), "not the file that the manifest names")
	}
	return parseSuspects(path, data, s.Header.DatabaseID, f)
}

func parseSuspects(path string, data []byte, id ID, f func(txn.Garbage)) error {
	if len(data) < suspectsHeader+8 || string(data[:8]) != suspectsMagic {
		return fault.Corrupt(path, 0, int64(len(data)), "no suspects file")
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != FormatVersion {
		return &fault.File{Kind: fault.ErrFormat, Path: path, Reason: "unknown version of a suspects file"}
	}
	body, sum := data[:len(data)-8], binary.LittleEndian.Uint64(data[len(data)-8:])
	if xxhash.Sum64(body) != sum {
		return fault.Corrupt(path, 0, int64(len(data)), "checksum does not match")
	}
	if ID(data[16:32]) != id {
		return &fault.File{Kind: fault.ErrForeignFile, Path: path, Reason: "suspects of another database"}
	}
	rest := body[suspectsHeader:]
	for range binary.LittleEndian.Uint32(data[12:]) {
		if len(rest) < suspectBytes {
			return fault.Corrupt(path, int64(len(body)-len(rest)), int64(len(rest)), "suspect cut short")
		}
		n := int(binary.LittleEndian.Uint16(rest[9:]))
		if len(rest) < suspectBytes+n {
			return fault.Corrupt(path, int64(len(body)-len(rest)), int64(len(rest)), "suspect's key cut short")
		}
		f(txn.Garbage{
			Row:   rowid.ID(binary.LittleEndian.Uint64(rest)),
			Kind:  txn.GarbageSuspect,
			Index: rest[8],
			Key:   rest[suspectBytes : suspectBytes+n],
		})
		rest = rest[suspectBytes+n:]
	}
	if len(rest) != 0 {
		return fault.Corrupt(path, int64(len(body)-len(rest)), int64(len(rest)), "bytes behind the last suspect")
	}
	return nil
}
