package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	wire := wireTable{Table: new(Table)}
	if err := decodeStrictly(data, &wire); err != nil || wire.Format != formatVersion {
		return nil, undecodable(data, err)
	}
	if err := wire.Validate(); err != nil {
		return nil, err
	}
	return wire.Table, nil
}

func decodeStrictly(data []byte, into *wireTable) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("bytes behind it")
	}
	return nil
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
