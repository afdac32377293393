package recovery

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/alloctest"
)

// fillIn gives everything below v a value of its own: n counts them.
func fillIn(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fillIn(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), n)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"name":"a b","list":[1,2]}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillIn(v.Index(0), n)
		fillIn(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fillIn(v.Index(i), n)
		}
	case reflect.String:
		v.SetString("a/b-" + string(rune('a'+*n%26)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		v.SetUint(*n % 256)
	}
}

// TestRecordsAreDecodedAsEncoded: no field of what encoding/json writes is forgotten.
func TestRecordsAreDecodedAsEncoded(t *testing.T) {
	n := uint64(0)
	var c, decoded Checkpoint
	fillIn(reflect.ValueOf(&c).Elem(), &n)
	text, err := json.Marshal(&c)
	require.NoError(t, err)
	require.NoError(t, decodeCheckpoint(text, &decoded))
	require.Equal(t, c, decoded)

	empty, again := Checkpoint{}, Checkpoint{}
	text, err = json.Marshal(&empty)
	require.NoError(t, err)
	require.NoError(t, decodeCheckpoint(text, &again))
	require.Equal(t, empty, again)
	require.Error(t, decodeCheckpoint([]byte(`{"checkpoint":1,"other":2}`), &again))

	var h, header Header
	fillIn(reflect.ValueOf(&h).Elem(), &n)
	text, err = json.Marshal(&h)
	require.NoError(t, err)
	require.NoError(t, decodeHeader(text, &header))
	require.Equal(t, h, header)
	require.NoError(t, decodeHeader(append([]byte(`{"later":{"x":[1]},`), text[1:]...), &header))
	require.Error(t, decodeHeader([]byte(`{"database_id":"12"}`), &header))
}

// bodies returns those of a header, with a field of a later release, and of a checkpoint.
func bodies(t testing.TB) (header, checkpoint []byte) {
	n := uint64(0)
	var h Header
	var c Checkpoint
	fillIn(reflect.ValueOf(&h).Elem(), &n)
	fillIn(reflect.ValueOf(&c).Elem(), &n)
	header, err := json.Marshal(&h)
	require.NoError(t, err)
	checkpoint, err = json.Marshal(&c)
	require.NoError(t, err)
	return append([]byte(`{"later":{"x":"a\\tb"},`), header[1:]...), checkpoint
}

// TestBodiesThatEnd: a body that ends anywhere, in an escape too, is an error, and
// nothing behind it is looked at.
func TestBodiesThatEnd(t *testing.T) {
	header, checkpoint := bodies(t)
	for _, end := range []string{"", `\`, `"`, `\u00`, "{", "-"} {
		for n := range header {
			require.Error(t, decodeHeader(slices.Clip(append(slices.Clone(header[:n]), end...)), &Header{}), "%s", header[:n])
		}
		for n := range checkpoint {
			require.Error(t, decodeCheckpoint(slices.Clip(append(slices.Clone(checkpoint[:n]), end...)), &Checkpoint{}), "%s", checkpoint[:n])
		}
	}
}

// FuzzBodies decodes what the checksum of a record is right for.
func FuzzBodies(f *testing.F) {
	header, checkpoint := bodies(f)
	f.Add(header)
	f.Add(checkpoint)
	f.Fuzz(func(t *testing.T, body []byte) {
		body = slices.Clip(body)
		var h, h2 Header
		var c, c2 Checkpoint
		var headerErr, err error
		alloctest.Bound(t, 64<<10, 200, len(body), func() { headerErr, err = decodeHeader(body, &h), decodeCheckpoint(body, &c) })
		if headerErr == nil {
			text, err := json.Marshal(&h)
			require.NoError(t, err)
			require.NoError(t, decodeHeader(text, &h2))
			require.Equal(t, h, h2)
		}
		if err == nil {
			text, err := json.Marshal(&c)
			require.NoError(t, err)
			require.NoError(t, decodeCheckpoint(text, &c2))
			again, err := json.Marshal(&c2)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		}
	})
}
