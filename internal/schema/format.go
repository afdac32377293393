package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// FormatKey returns the key of the index in readable form, such as (1, "abc"),
// for messages. Bytes are shown in hex, like 0x00ff. A key prefix shows as the
// columns it has; what cannot be decoded shows as ? and hex.
func (l *Layout) FormatKey(index int, key []byte) string {
	var list []string
	for _, column := range l.table.Indexes[index].Columns {
		if len(key) == 0 {
			break
		}
		text, rest, err := formatComponent(l.table.Columns[column], key)
		if err != nil {
			break
		}
		list = append(list, text)
		key = rest
	}
	if len(key) > 0 {
		list = append(list, fmt.Sprintf("?%x", key))
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func formatComponent(c Column, key []byte) (text string, rest []byte, err error) {
	if c.Nullable {
		null, rest, err := keyenc.DecodeNull(key)
		if null || err != nil {
			return "NULL", rest, err
		}
		key = rest
	}
	return formatValue(c.Type, key)
}

func formatValue(t Type, key []byte) (text string, rest []byte, err error) {
	var v any
	layout := "%v"
	switch info := types[t]; {
	case t == Bool:
		v, rest, err = keyenc.DecodeBool(key)
	case t == Float32:
		v, rest, err = keyenc.DecodeFloat32(key)
	case t == Float64:
		v, rest, err = keyenc.DecodeFloat64(key)
	case info.class == signed:
		v, rest, err = keyenc.DecodeInt(key, int(info.width))
	case info.class == unsigned:
		v, rest, err = keyenc.DecodeUint(key, int(info.width))
	case t == String:
		layout = "%q"
		v, rest, err = keyenc.DecodeBytes(nil, key)
	case t == Bytes:
		layout = "0x%x"
		v, rest, err = keyenc.DecodeBytes(nil, key)
	default:
		var at time.Time
		at, rest, err = keyenc.DecodeTime(key)
		v = at.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf(layout, v), rest, err
}
