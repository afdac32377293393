package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rekindledb/rekindle/internal/fault"
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
	var version struct{ Format int }
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("%w: table definition: %w", fault.ErrCorrupt, err)
	}
	if version.Format != formatVersion {
		return nil, fmt.Errorf("%w: table definition: version %d", fault.ErrFormat, version.Format)
	}
	wire := wireTable{Table: new(Table)}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire); err != nil {
		return nil, fmt.Errorf("%w: table definition: %w", fault.ErrCorrupt, err)
	}
	if err := wire.Validate(); err != nil {
		return nil, err
	}
	return wire.Table, nil
}
