package schema

import (
	"encoding/json"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/jsonread"
)

// formatVersion is the version of the JSON form of a table, and so of the
// payloads and keys under it. See docs/format/row.md.
const formatVersion = 1

type wireTable struct {
	Format int `json:"format"`
	*Table
}

// Marshal returns the JSON form of a valid table. Equal tables give equal
// bytes.
func (t *Table) Marshal() ([]byte, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(wireTable{Format: formatVersion, Table: t})
}

// Unmarshal reads what Marshal wrote and validates it. The error wraps
// fault.ErrFormat for a version that this code does not know, fault.ErrCorrupt
// for other bytes that Marshal does not write, fault.ErrSchema for a
// definition that is not valid.
func Unmarshal(data []byte) (*Table, error) {
	wire := wireTable{Table: new(Table)}
	if err := wire.decode(data); err != nil || wire.Format != formatVersion {
		return nil, undecodable(data, err)
	}
	if err := wire.Validate(); err != nil {
		return nil, err
	}
	return wire.Table, nil
}

func (w *wireTable) decode(data []byte) error {
	r := jsonread.New(data)
	r.Object(func(field string) bool {
		switch field {
		case "format":
			w.Format = int(r.Int())
		case "name":
			w.Name = r.String()
		case "columns":
			w.Columns = jsonread.List(r, func(c *Column) { c.decode(r) })
		case "indexes":
			w.Indexes = jsonread.List(r, func(x *Index) { x.decode(r) })
		default:
			return false
		}
		return true
	})
	return r.End()
}

func (c *Column) decode(r *jsonread.Reader) {
	r.Object(func(field string) bool {
		switch field {
		case "name":
			c.Name = r.String()
		case "type":
			if err := c.Type.UnmarshalText([]byte(r.String())); err != nil {
				r.Fail(err)
			}
		case "nullable":
			c.Nullable = r.Bool()
		default:
			return false
		}
		return true
	})
}

func (x *Index) decode(r *jsonread.Reader) {
	r.Object(func(field string) bool {
		switch field {
		case "name":
			x.Name = r.String()
		case "columns":
			x.Columns = jsonread.List(r, func(i *int) { *i = int(r.Int()) })
		case "unique":
			x.Unique = r.Bool()
		default:
			return false
		}
		return true
	})
}

// undecodable says what is wrong with a definition: its version, if that can be read
// and is another one, because all else may be different then.
func undecodable(data []byte, err error) error {
	var version struct{ Format int }
	if versionErr := json.Unmarshal(data, &version); versionErr != nil {
		return fmt.Errorf("%w: table definition: %w", fault.ErrCorrupt, versionErr)
	}
	if version.Format != formatVersion {
		return fmt.Errorf("%w: table definition: version %d", fault.ErrFormat, version.Format)
	}
	return fmt.Errorf("%w: table definition: %w", fault.ErrCorrupt, err)
}
