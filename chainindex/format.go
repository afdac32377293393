package chainindex

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/rowid"
)

// The format of files; docs/format/chain.md describes it.
const (
	formatVersion = 1
	extension     = "chain"

	nodeSize     = btree.NodeSize
	headerSize   = nodeSize
	headerFields = 48
	footerSize   = 64
)

const (
	headerMagic = "\x89CHN\r\n\x1a\n" // a text conversion anywhere breaks it
	footerMagic = "CHNend\r\n"
)

// rootID is the id of the root of every file. It is written last.
const rootID btree.NodeID = 1

// identity says what a file is.
type identity struct {
	database   [16]byte
	table      rowid.Table
	number     uint16 // of the index in its table
	checkpoint uint64 // that wrote it
}

func identityOf(spec *index.Spec, checkpoint uint64) identity {
	return identity{spec.DatabaseID, spec.Table, uint16(spec.Number), checkpoint}
}

// Parts of a file that have checksums of their own.
const (
	partNode   = 1
	partFooter = 2
)

// seed makes checksums of a part valid in no other file.
func (id identity) seed(part uint64) uint64 {
	b := append([]byte(nil), id.database[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(id.table))
	b = binary.LittleEndian.AppendUint16(b, id.number)
	b = binary.LittleEndian.AppendUint64(b, id.checkpoint)
	b = binary.LittleEndian.AppendUint64(b, part)
	return xxhash.Sum64(b)
}

func checksum(seed uint64, b []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(seed)
	d.Write(b) // never fails
	return d.Sum64()
}

// nodeSum is the checksum of a node, which stands in its first word.
func nodeSum(seed uint64, node []byte) uint64 { return checksum(seed, node[8:nodeSize]) }

func (id identity) appendHeader(b []byte) []byte {
	start := len(b)
	b = append(b, headerMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint16(b, uint16(id.table))
	b = binary.LittleEndian.AppendUint16(b, id.number)
	b = append(b, id.database[:]...)
	b = binary.LittleEndian.AppendUint64(b, id.checkpoint)
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[start:]))
	return append(b, make([]byte, headerSize-headerFields)...)
}

// checkHeader compares the fields of a header with what they have to be.
func (id identity) checkHeader(path string, b []byte) error {
	refuse := func(kind error, reason string) error {
		return &fault.File{Kind: kind, Path: path, Length: headerFields, Reason: reason}
	}
	if string(b[:8]) != headerMagic {
		return refuse(fault.ErrCorrupt, "not a chain file")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
		return refuse(fault.ErrFormat, "unknown version of the chain format")
	}
	if binary.LittleEndian.Uint64(b[40:]) != xxhash.Sum64(b[:40]) {
		return refuse(fault.ErrCorrupt, "checksum of the header does not match")
	}
	if !bytes.Equal(b[16:32], id.database[:]) {
		return refuse(fault.ErrForeignFile, "chain file of another database")
	}
	if !bytes.Equal(b[:headerFields], id.appendHeader(nil)[:headerFields]) {
		return refuse(fault.ErrCorrupt, "chain file of another index or checkpoint")
	}
	return nil
}

// footer says how large the parts of a file are, and which file is the next
// older one of its chain.
type footer struct {
	nodes      uint64
	entries    uint64 // live ones
	tombstones uint64
	older      uint64 // its checkpoint; 0: none, this is the oldest file
	olderSum   uint64 // xxhash64 of all of it
}

// fileSize returns the size of a file with so many nodes.
func fileSize(nodes uint64) uint64 { return headerSize + nodes*nodeSize + footerSize }

func (f *footer) append(b []byte, seed uint64) []byte {
	start := len(b)
	b = append(b, footerMagic...)
	b = binary.LittleEndian.AppendUint64(b, fileSize(f.nodes))
	for _, field := range []uint64{f.nodes, f.entries, f.tombstones, f.older, f.olderSum} {
		b = binary.LittleEndian.AppendUint64(b, field)
	}
	return binary.LittleEndian.AppendUint64(b, checksum(seed, b[start:]))
}

// decodeFooter reads the footer of a file of the given size.
func decodeFooter(path string, b []byte, seed uint64, size int64) (footer, error) {
	at := size - footerSize
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	if string(b[:8]) != footerMagic || word(7) != checksum(seed, b[:56]) {
		return footer{}, fault.Corrupt(path, at, footerSize, "checksum of the footer does not match")
	}
	f := footer{nodes: word(2), entries: word(3), tombstones: word(4), older: word(5), olderSum: word(6)}
	if f.nodes == 0 || f.nodes > uint64(size)/nodeSize || fileSize(f.nodes) != uint64(size) || word(1) != uint64(size) {
		return footer{}, fault.Corrupt(path, at, footerSize, "file of %d nodes has %d bytes", f.nodes, size)
	}
	return f, nil
}
