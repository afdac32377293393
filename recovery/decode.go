package recovery

import (
	"math"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/jsonread"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
)

// decodeHeader reads the body of a header. A later format may have other fields, which
// are passed over: the version tells.
func decodeHeader(body []byte, h *Header) error {
	r := jsonread.New(body)
	r.Object(func(field string) bool {
		switch field {
		case "format":
			h.Format = int(r.Int())
		case "database_id":
			if err := h.DatabaseID.UnmarshalText([]byte(r.String())); err != nil {
				r.Fail(err)
			}
		case "log_streams":
			h.LogStreams = int(r.Int())
		case "segment_bytes":
			h.SegmentBytes = r.Int()
		case "index_strategy":
			h.Strategy = r.String()
		default:
			r.Raw()
		}
		return true
	})
	return r.End()
}

// decodeCheckpoint reads the body of a record. It refuses fields that this release
// does not know: they would mean something that it does not do.
func decodeCheckpoint(body []byte, c *Checkpoint) error {
	r := jsonread.New(body)
	r.Object(func(field string) bool {
		switch field {
		case "checkpoint":
			c.Number = r.Uint(math.MaxUint64)
		case "cts":
			c.CTS = r.Uint(math.MaxUint64)
		case "round":
			c.Round = r.Uint(math.MaxUint64)
		case "replay":
			c.Replay = decodePositions(r)
		case "ends":
			c.Ends = decodePositions(r)
		case "tables":
			c.Tables = jsonread.List(r, func(t *TableImage) { t.decode(r) })
		case "indexes":
			c.Indexes = jsonread.List(r, func(x *IndexFiles) { x.decode(r) })
		case "suspects":
			c.Suspects = decodeFileInfo(r)
		case "live":
			c.Live = jsonread.List(r, func(l *SegmentLive) { l.decode(r) })
		default:
			return false
		}
		return true
	})
	return r.End()
}

func decodePositions(r *jsonread.Reader) []logstream.Position {
	return jsonread.List(r, func(p *logstream.Position) { *p = logstream.Position(r.Uint(math.MaxUint64)) })
}

func decodeTable(r *jsonread.Reader) rowid.Table { return rowid.Table(r.Uint(math.MaxUint16)) }

func (t *TableImage) decode(r *jsonread.Reader) {
	r.Object(func(field string) bool {
		switch field {
		case "table":
			t.Table = decodeTable(r)
		case "generation":
			t.Generation = decodeGeneration(r)
		case "files":
			t.Files = jsonread.List(r, func(name *string) { *name = r.String() })
		case "definition":
			t.Definition = r.Raw()
		default:
			return false
		}
		return true
	})
}

func decodeGeneration(r *jsonread.Reader) (g indirection.Generation) {
	r.Object(func(field string) bool {
		switch field {
		case "Number":
			g.Number = r.Uint(math.MaxUint64)
		case "Size":
			g.Size = r.Int()
		case "Sum":
			g.Sum = r.Uint(math.MaxUint64)
		default:
			return false
		}
		return true
	})
	return g
}

func (x *IndexFiles) decode(r *jsonread.Reader) {
	r.Object(func(field string) bool {
		switch field {
		case "table":
			x.Table = decodeTable(r)
		case "index":
			x.Index = int(r.Int())
		case "files":
			x.Files = jsonread.List(r, func(f *index.FileInfo) { decodeIndexFile(r, f) })
		default:
			return false
		}
		return true
	})
}

func decodeIndexFile(r *jsonread.Reader, f *index.FileInfo) {
	r.Object(func(field string) bool {
		switch field {
		case "Name":
			f.Name = r.String()
		case "Size":
			f.Size = r.Int()
		case "Sum":
			f.Sum = r.Uint(math.MaxUint64)
		case "Checkpoint":
			f.Checkpoint = r.Uint(math.MaxUint64)
		default:
			return false
		}
		return true
	})
}

// decodeFileInfo returns nil where there is none.
func decodeFileInfo(r *jsonread.Reader) *FileInfo {
	if r.Null() {
		return nil
	}
	f := &FileInfo{}
	r.Object(func(field string) bool {
		switch field {
		case "name":
			f.Name = r.String()
		case "size":
			f.Size = r.Int()
		case "sum":
			f.Sum = r.Uint(math.MaxUint64)
		default:
			return false
		}
		return true
	})
	return f
}

func (l *SegmentLive) decode(r *jsonread.Reader) {
	r.Object(func(field string) bool {
		switch field {
		case "stream":
			l.Stream = int(r.Int())
		case "first":
			l.First = logstream.Position(r.Uint(math.MaxUint64))
		case "bytes":
			l.Bytes = r.Int()
		default:
			return false
		}
		return true
	})
}
