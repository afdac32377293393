package recovery

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// FormatVersion is the version of the directory layout and of the manifest.
const FormatVersion = 1

// Names inside a database directory.
const (
	lockName       = "LOCK"
	currentName    = "CURRENT"
	manifestPrefix = "MANIFEST-"
	checkpointDir  = "ckpt"
)

// LogDir is the folder of the log in a database directory.
const LogDir = "log"

// Header is the first record of a manifest: what never changes in the life of
// a database.
type Header struct {
	Format       int    `json:"format"`
	DatabaseID   ID     `json:"database_id"`
	LogStreams   int    `json:"log_streams"`
	SegmentBytes int64  `json:"segment_bytes"`
	Strategy     string `json:"index_strategy"`
}

// ID is the identity that every file of a database carries. In the manifest it
// is written in hexadecimal.
type ID [16]byte

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", id[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	var b []byte
	if n, err := fmt.Sscanf(string(text), "%x", &b); n != 1 || err != nil || len(b) != len(id) {
		return fmt.Errorf("%q is not a database id", text)
	}
	copy(id[:], b)
	return nil
}

// Checkpoint is a manifest record: one complete checkpoint.
type Checkpoint struct {
	Number   uint64               `json:"checkpoint"`
	CTS      uint64               `json:"cts"`    // TSc: the array describes exactly this
	Round    uint64               `json:"round"`  // the durable round that ends with it
	Replay   []logstream.Position `json:"replay"` // per stream: where the tail starts
	Ends     []logstream.Position `json:"ends"`   // per stream: where Round ends, durable
	Tables   []TableImage         `json:"tables"`
	Indexes  []IndexFiles         `json:"indexes,omitempty"`
	Suspects *FileInfo            `json:"suspects,omitempty"`
	Live     []SegmentLive        `json:"live"` // log bytes that the arrays name, by segment
}

// maxNumber is the largest number of a checkpoint and of a manifest file: far from
// where the next one would be 0.
const maxNumber = 1<<62 - 1

// TableImage names the newest array file of a table.
type TableImage struct {
	Table      rowid.Table            `json:"table"`
	Generation indirection.Generation `json:"generation"`
	Files      []string               `json:"files"` // all array files that it refers to
}

func (c *Checkpoint) liveBytes() (sum int64) {
	if c == nil {
		return 0
	}
	for _, l := range c.Live {
		sum += l.Bytes
	}
	return sum
}

// IndexFiles names the files of one index.
type IndexFiles struct {
	Table rowid.Table      `json:"table"`
	Index int              `json:"index"`
	Files []index.FileInfo `json:"files"`
}

// FileInfo names a file relative to the database directory.
type FileInfo struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  uint64 `json:"sum"`
}

// SegmentLive counts the live bytes of a log segment.
type SegmentLive struct {
	Stream int                `json:"stream"`
	First  logstream.Position `json:"first"`
	Bytes  int64              `json:"bytes"`
}

// A manifest file is a sequence of records, each
//
//	offset  size  field
//	     0     4  magic "RKMF"
//	     4     4  length of the body in bytes
//	     8     8  xxhash64 of magic, length, sequence number and body
//	    16     8  sequence number, 0 for the header
//	    24     -  body: JSON
//
// The first is the Header, each further one a Checkpoint.
const (
	manifestMagic   = 0x464D4B52
	recordHeader    = 24
	maxRecordBytes  = 64 << 20
	maxFileBytes    = 256 << 20 // of a file that is read as a whole
	manifestRotates = 1 << 20   // bytes after which a new manifest file is begun
)

// AppendRecord appends a record of a manifest file; body becomes JSON.
func AppendRecord(dst []byte, sequence uint64, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return dst, fmt.Errorf("manifest record: %w", err)
	}
	at := len(dst)
	dst = append(dst, make([]byte, recordHeader)...)
	dst = append(dst, text...)
	record := dst[at:]
	binary.LittleEndian.PutUint32(record, manifestMagic)
	binary.LittleEndian.PutUint32(record[4:], uint32(len(text)))
	binary.LittleEndian.PutUint64(record[16:], sequence)
	binary.LittleEndian.PutUint64(record[8:], recordSum(record))
	return dst, nil
}

// recordSum covers the whole record but the sum itself.
func recordSum(record []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	d.Write(record[:8])
	d.Write(record[16:])
	return d.Sum64()
}

// nextRecord splits the first record off data. ok is false if there is no
// whole and sound one with that sequence number.
func nextRecord(data []byte, sequence uint64) (body, rest []byte, ok bool) {
	if len(data) < recordHeader || binary.LittleEndian.Uint32(data) != manifestMagic {
		return nil, data, false
	}
	n := uint64(binary.LittleEndian.Uint32(data[4:])) + recordHeader
	if n > uint64(len(data)) || n > maxRecordBytes {
		return nil, data, false
	}
	record := data[:n]
	if binary.LittleEndian.Uint64(record[8:]) != recordSum(record) || binary.LittleEndian.Uint64(record[16:]) != sequence {
		return nil, data, false
	}
	return record[recordHeader:], data[n:], true
}

// Manifest is the content of a manifest file.
type Manifest struct {
	Header
	Number      uint64       // of the file
	Checkpoints []Checkpoint // in the order they were published
	Torn        bool         // bytes that are no record follow the last one
}

func manifestName(number uint64) string { return fmt.Sprintf("%s%06d", manifestPrefix, number) }

// parseManifest reads the bytes of a manifest file. Whatever follows the last
// sound record is an unfinished publication: reported, not believed.
func parseManifest(path string, data []byte) (*Manifest, error) {
	body, rest, ok := nextRecord(data, 0)
	if !ok {
		return nil, fault.Corrupt(path, 0, int64(min(len(data), recordHeader)), "no manifest header")
	}
	m := &Manifest{}
	if err := json.Unmarshal(body, &m.Header); err != nil {
		return nil, fault.Corrupt(path, 0, int64(len(body)), "manifest header: %v", err)
	}
	if err := m.Header.validate(path); err != nil {
		return nil, err
	}
	for sequence := uint64(1); len(rest) > 0; sequence++ {
		body, after, ok := nextRecord(rest, sequence)
		if !ok {
			m.Torn = true
			return m, nil
		}
		var c Checkpoint
		if err := decodeStrictly(body, &c); err != nil {
			return nil, fault.Corrupt(path, int64(len(data)-len(rest)), int64(len(body)), "manifest record %d: %v", sequence, err)
		}
		if err := c.sound(m); err != nil {
			return nil, fault.Corrupt(path, int64(len(data)-len(rest)), int64(len(body)), "manifest record %d: %v", sequence, err)
		}
		m.Checkpoints = append(m.Checkpoints, c)
		rest = after
	}
	return m, nil
}

func (h *Header) validate(path string) error {
	if h.Format != FormatVersion {
		return &fault.File{Kind: fault.ErrFormat, Path: path, Reason: fmt.Sprintf("format version %d, this release reads %d", h.Format, FormatVersion)}
	}
	if h.LogStreams < 1 || h.LogStreams > logstream.MaxStreams || h.SegmentBytes < logstream.MinSegmentBytes || h.SegmentBytes&(h.SegmentBytes-1) != 0 {
		return fault.Corrupt(path, 0, 0, "%d streams of %d-byte segments", h.LogStreams, h.SegmentBytes)
	}
	return nil
}

// decodeStrictly refuses fields that this release does not know: they would
// mean something that it does not do.
func decodeStrictly(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// readManifest reads the manifest that CURRENT names.
func readManifest(files vfs.FS, dir string) (*Manifest, error) {
	current := filepath.Join(dir, currentName)
	text, err := vfs.ReadFile(files, current, maxFileBytes)
	if err != nil {
		return nil, err
	}
	name, complete := strings.CutSuffix(string(text), "\n")
	var number uint64
	if _, err := fmt.Sscanf(name, manifestPrefix+"%d", &number); err != nil || !complete || name != manifestName(number) || number > maxNumber {
		return nil, fault.Corrupt(current, 0, int64(len(text)), "%q names no manifest", text)
	}
	path := filepath.Join(dir, name)
	data, err := vfs.ReadFile(files, path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fault.File{Kind: fault.ErrMissingFile, Path: path, Reason: "named by " + currentName}
	}
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(path, data)
	if err != nil {
		return nil, err
	}
	m.Number = number
	return m, nil
}

// manifestWriter appends records to the current manifest and begins a new file
// when that grew large, when a write failed, or after a restart.
type manifestWriter struct {
	files    vfs.FS
	dir      string
	header   Header
	number   uint64 // of the newest manifest file, 0 before the first
	file     vfs.File
	size     int64
	sequence uint64
}

// publish makes c the newest checkpoint, durably. kept are the earlier ones
// that stay usable; a new file repeats them. After an error the manifest on
// disk may or may not name c, so the caller must delete nothing.
func (w *manifestWriter) publish(c *Checkpoint, kept []Checkpoint) error {
	if w.file == nil || w.size > manifestRotates {
		return w.begin(append(kept[:len(kept):len(kept)], *c))
	}
	record, err := AppendRecord(nil, w.sequence, c)
	if err != nil {
		return err
	}
	if _, err = w.file.WriteAt(record, w.size); err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("publish checkpoint %d: %w", c.Number, err), w.close())
	}
	w.size += int64(len(record))
	w.sequence++
	return nil
}

// begin writes a new manifest file with the given checkpoints and points
// CURRENT to it. The one before it is garbage from then on.
func (w *manifestWriter) begin(checkpoints []Checkpoint) error {
	data, err := AppendRecord(nil, 0, w.header)
	for i := range checkpoints {
		if err == nil {
			data, err = AppendRecord(data, uint64(i+1), &checkpoints[i])
		}
	}
	if err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	f, number, err := w.create()
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Sync()
	}
	if err == nil { // the name must be durable before CURRENT can be
		err = w.files.SyncDir(w.dir)
	}
	if err == nil {
		err = vfs.WriteFileAtomic(w.files, filepath.Join(w.dir, currentName), []byte(manifestName(number)+"\n"))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("begin %s: %w", manifestName(number), err), f.Close())
	}
	w.number, w.file, w.size, w.sequence = number, f, int64(len(data)), uint64(len(checkpoints)+1)
	return nil
}

// create makes the next manifest file; leftovers of failed attempts are passed
// over.
func (w *manifestWriter) create() (vfs.File, uint64, error) {
	for number := w.number + 1; ; number++ {
		if number > maxNumber {
			return nil, 0, fmt.Errorf("%w: manifest numbers are used up", fault.ErrNoSpace)
		}
		f, err := w.files.Create(filepath.Join(w.dir, manifestName(number)))
		if !errors.Is(err, fs.ErrExist) {
			return f, number, err
		}
	}
}

func (w *manifestWriter) close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.Close()
}
