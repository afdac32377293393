package recovery

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"syscall"

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
	if len(text) != hex.EncodedLen(len(id)) {
		return fmt.Errorf("%q is not a database id", text)
	}
	var b ID
	if _, err := hex.Decode(b[:], text); err != nil {
		return fmt.Errorf("%q is not a database id: %w", text, err)
	}
	*id = b
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

// TableImage names the newest array file of a table.
type TableImage struct {
	Table      rowid.Table            `json:"table"`
	Generation indirection.Generation `json:"generation"`
	Files      []string               `json:"files"` // all array files that it refers to
	// Definition repeats the one in the system table, so that the rows can be
	// read if that row is lost.
	Definition json.RawMessage `json:"definition,omitempty"`
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
	maxCurrentBytes = 64       // of CURRENT
	manifestRotates = 16 << 10 // bytes after which a new manifest file is begun: Open decodes all records
)

// errRecordTooLarge: what could not be read back is not written.
var errRecordTooLarge = errors.New("more than a manifest can hold")

// AppendRecord appends a record of a manifest file; body becomes JSON.
func AppendRecord(dst []byte, sequence uint64, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return dst, fmt.Errorf("manifest record: %w", err)
	}
	at := len(dst)
	if len(text) > maxRecordBytes-recordHeader {
		return dst, fmt.Errorf("manifest record of %d bytes: %w", len(text), errRecordTooLarge)
	}
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

// recordReader reads the records of a manifest file one after the other, so that
// it takes no more memory than the largest sound one.
type recordReader struct {
	file     io.ReaderAt
	size     int64
	at       int64 // where the next record begins
	sequence uint64
}

// next returns the body of the next record. ok is false if there is no whole and
// sound one with the next sequence number.
func (r *recordReader) next() (body []byte, ok bool, err error) {
	left := r.size - r.at
	if left < recordHeader {
		return nil, false, nil
	}
	record := make([]byte, recordHeader)
	if err := readRange(r.file, record, r.at); err != nil {
		return nil, false, err
	}
	n := int64(binary.LittleEndian.Uint32(record[4:])) + recordHeader
	if binary.LittleEndian.Uint32(record) != manifestMagic || n > min(left, maxRecordBytes) {
		return nil, false, nil
	}
	record = append(record, make([]byte, n-recordHeader)...)
	if err := readRange(r.file, record[recordHeader:], r.at+recordHeader); err != nil {
		return nil, false, err
	}
	if binary.LittleEndian.Uint64(record[8:]) != recordSum(record) || binary.LittleEndian.Uint64(record[16:]) != r.sequence {
		return nil, false, nil
	}
	r.at += n
	r.sequence++
	return record[recordHeader:], true, nil
}

// manifestWindow is how much of a manifest is looked through at once for the next
// record, and resyncEffort how many times its size may be read for that: bytes
// made to look like records cannot make it take for ever.
const (
	manifestWindow = 64 << 10
	resyncEffort   = 16
)

// resync looks for the next sound record behind a place where there is none, with
// any higher number.
func (r *recordReader) resync() (found bool, err error) {
	effort := resyncEffort * r.size
	buf := make([]byte, manifestWindow)
	for from := r.at + 1; from+recordHeader <= r.size; from += manifestWindow - recordHeader + 1 {
		window := buf[:min(manifestWindow, r.size-from)]
		if err := readRange(r.file, window, from); err != nil {
			return false, err
		}
		for i := 0; i+recordHeader <= len(window); i++ {
			if binary.LittleEndian.Uint32(window[i:]) != manifestMagic {
				continue
			}
			next := recordReader{file: r.file, size: r.size, at: from + int64(i), sequence: binary.LittleEndian.Uint64(window[i+16:])}
			if effort -= int64(binary.LittleEndian.Uint32(window[i+4:])); effort < 0 || next.sequence < r.sequence {
				continue
			}
			try := next
			if _, ok, err := try.next(); err != nil || ok {
				*r = next
				return ok, err
			}
		}
	}
	return false, nil
}

// maxUnfinished bounds what is read to tell a torn record from a damaged one.
const maxUnfinished = 4 << 20

// unfinished judges what follows the last sound record.
func (r *recordReader) unfinished(at int64) (bool, error) {
	if r.size-at > maxUnfinished {
		return false, nil
	}
	record := make([]byte, r.size-at)
	err := readRange(r.file, record, at)
	return err == nil && unfinished(record, at), err
}

// readRange fills b. A file that has become shorter ends it too.
func readRange(file io.ReaderAt, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// Manifest is the content of a manifest file.
type Manifest struct {
	Header
	Number      uint64       // of the file
	Checkpoints []Checkpoint // in the order they were published
	Torn        bool         // bytes that are no record follow the last one
	Unfinished  bool         // they look like one that was being written
	Holes       int          // places before the last one that hold none
}

// allRecords has all records of a manifest decoded.
const allRecords = math.MaxInt

// parseManifest reads a manifest file and decodes its newest records: those before
// are only verified. Whatever follows the last sound record is
// an unfinished publication: reported, not believed. Nothing is ever written
// behind one of these, so what lies before a sound record is damage, and the
// checkpoint behind it counts: each record is complete.
func parseManifest(path string, file io.ReaderAt, size int64, newest int) (*Manifest, error) {
	r := &recordReader{file: file, size: size}
	body, ok, err := r.next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.Corrupt(path, 0, min(size, recordHeader), "no manifest header")
	}
	m := &Manifest{}
	if err := decodeHeader(body, &m.Header); err != nil {
		return nil, fault.Corrupt(path, 0, r.at, "manifest header: %v", err)
	}
	if err := m.Header.validate(path); err != nil {
		return nil, err
	}
	found, err := m.find(r)
	if err != nil {
		return nil, err
	}
	for _, at := range found[max(0, len(found)-newest):] {
		if err := m.decode(path, at); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// find returns where the sound records from r on are.
func (m *Manifest) find(r *recordReader) (found []recordReader, err error) {
	for r.at < r.size {
		here := *r
		_, ok, err := r.next()
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, here)
			continue
		}
		if ok, err = r.resync(); err != nil {
			return nil, err
		}
		if !ok {
			m.Torn = true
			m.Unfinished, err = r.unfinished(here.at)
			return found, err
		}
		m.Holes++
	}
	return found, nil
}

// decode adds the checkpoint of a record that was found.
func (m *Manifest) decode(path string, r recordReader) error {
	start := r.at
	body, ok, err := r.next()
	if err != nil {
		return err
	}
	var c Checkpoint
	if !ok {
		err = errors.New("changed while it was read")
	}
	if err == nil {
		err = decodeCheckpoint(body, &c)
	}
	if err == nil {
		err = c.sound(m)
	}
	if err != nil {
		return fault.Corrupt(path, start, r.at-start, "manifest record %d: %v", r.sequence-1, err)
	}
	m.Checkpoints = append(m.Checkpoints, c)
	return nil
}

func (h *Header) validate(path string) error {
	if h.Format != FormatVersion {
		return &fault.File{Kind: fault.ErrFormat, Path: path, Reason: fmt.Sprintf("format version %d, this release reads %d", h.Format, FormatVersion)}
	}
	if h.LogStreams < 1 || h.LogStreams > logstream.MaxStreams || h.SegmentBytes < logstream.MinSegmentBytes || h.SegmentBytes > logstream.MaxSegmentBytes || h.SegmentBytes&(h.SegmentBytes-1) != 0 {
		return fault.Corrupt(path, 0, 0, "%d streams of %d-byte segments", h.LogStreams, h.SegmentBytes)
	}
	return nil
}

// readManifest reads the manifest that CURRENT names, and decodes its newest records.
func readManifest(files vfs.FS, dir string, newest int) (*Manifest, error) {
	number, err := readCurrent(files, dir)
	if err != nil {
		return nil, err
	}
	m, err := openManifest(files, filepath.Join(dir, manifestName(number)), newest)
	if err != nil {
		return nil, err
	}
	m.Number = number
	return m, nil
}

// readCurrent returns the number of the manifest that CURRENT names.
func readCurrent(files vfs.FS, dir string) (uint64, error) {
	path := filepath.Join(dir, currentName)
	text, err := readSmall(files, path, maxCurrentBytes)
	if err != nil {
		return 0, err
	}
	name, complete := strings.CutSuffix(string(text), "\n")
	digits, prefixed := strings.CutPrefix(name, manifestPrefix)
	number, ok := parseNumber(digits)
	if !complete || !prefixed || !ok {
		return 0, fault.Corrupt(path, 0, int64(len(text)), "%q names no manifest", text)
	}
	return number, nil
}

// readSmall reads a file that is refused if it has more than limit bytes.
func readSmall(files vfs.FS, path string, limit int64) ([]byte, error) {
	data, err := vfs.ReadFile(files, path, limit)
	if errors.Is(err, syscall.EFBIG) {
		return nil, fault.Corrupt(path, 0, 0, "file has more than %d bytes", limit)
	}
	return data, err
}

// readWhole is up to which size a manifest is read at once. One that is not damaged is
// hardly larger than what it rotates at.
const readWhole = 4 * manifestRotates

func openManifest(files vfs.FS, path string, newest int) (_ *Manifest, err error) {
	f, err := files.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fault.File{Kind: fault.ErrMissingFile, Path: path, Reason: "named by " + currentName}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > readWhole {
		return parseManifest(path, f, size, newest)
	}
	whole := make([]byte, size)
	if err := readRange(f, whole, 0); err != nil {
		return nil, err
	}
	return parseManifest(path, bytes.NewReader(whole), size, newest)
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
	data, err := encodeManifest(w.header, checkpoints)
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

// encodeManifest returns the content of a manifest file.
func encodeManifest(h Header, checkpoints []Checkpoint) ([]byte, error) {
	data, err := AppendRecord(nil, 0, h)
	for i := range checkpoints {
		if err == nil {
			data, err = AppendRecord(data, uint64(i+1), &checkpoints[i])
		}
	}
	return data, err
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
