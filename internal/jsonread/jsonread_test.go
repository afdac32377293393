package jsonread_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/jsonread"
)

type inner struct {
	Name string
	On   bool
}

type outer struct {
	A uint64
	B int64
	C string
	D []uint16
	E []inner
	F *inner
	G json.RawMessage `json:",omitempty"`
}

func decode(data []byte) (o outer, err error) {
	r := jsonread.New(data)
	r.Object(func(name string) bool {
		switch name {
		case "A":
			o.A = r.Uint(math.MaxUint64)
		case "B":
			o.B = r.Int()
		case "C":
			o.C = r.String()
		case "D":
			o.D = jsonread.List(r, func(n *uint16) { *n = uint16(r.Uint(math.MaxUint16)) })
		case "E":
			o.E = jsonread.List(r, func(i *inner) { decodeInner(r, i) })
		case "F":
			o.F = nil
			if !r.Null() {
				o.F = &inner{}
				decodeInner(r, o.F)
			}
		case "G":
			o.G = r.Raw()
		default:
			return false
		}
		return true
	})
	return o, r.End()
}

func decodeInner(r *jsonread.Reader, i *inner) {
	r.Object(func(name string) bool {
		switch name {
		case "Name":
			i.Name = r.String()
		case "On":
			i.On = r.Bool()
		default:
			return false
		}
		return true
	})
}

func TestReadsWhatIsWritten(t *testing.T) {
	for _, o := range []outer{
		{},
		{A: math.MaxUint64, B: math.MinInt64, C: "plain", D: []uint16{0, math.MaxUint16}},
		{B: math.MaxInt64, C: "quote \" backslash \\ <&> \x00 \t é \u2028 😀", D: []uint16{}, E: []inner{}},
		{B: -1, E: []inner{{"a", true}, {}}, F: &inner{Name: "{[,"}, G: json.RawMessage(`{"x":[1,-2.5e3,"]\"",null,true],"y":{}}`)},
	} {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		got, err := decode(text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, o, got)
		var indented bytes.Buffer
		require.NoError(t, json.Indent(&indented, text, " ", "\t"))
		got, err = decode(indented.Bytes())
		require.NoError(t, err, "%s", indented.String())
		require.Equal(t, o.A, got.A)
		for n := range len(text) {
			_, err := decode(text[:n])
			require.Error(t, err, "%s", text[:n])
		}
	}
}

// refused are texts that encoding/json refuses too, but for those behind.
var refused = []string{
	``, `{`, `}`, `{}}`, `{},`, `{"A":1,}`, `{,"A":1}`, `{"A" 1}`, `{"A":1 "B":2}`, `{"A":}`, `{A:1}`, `{"A":1}x`, "{}\x00",
	`{"A":18446744073709551616}`, `{"A":99999999999999999999}`, `{"A":-1}`, `{"A":1.0}`, `{"A":1e2}`, `{"A":01}`, `{"A":"1"}`,
	`{"B":9223372036854775808}`, `{"B":-9223372036854775809}`, `{"B":-}`, `{"B":- 1}`, `{"B":--1}`, `{"B":-01}`,
	`{"C":"a}`, `{"C":"\x"}`, "{\"C\":\"\n\"}", `{"C":'a'}`, `{"C":"\u12"}`, `{"D":[1,]}`, `{"D":[65536]}`, `{"D":[1 2]}`, `{"D":{}}`,
	`{"E":[{"Name":1}]}`, `{"E":[{"On":tru}]}`, `{"E":[{"On":1}]}`, `{"G":}`, `{"G":]}`, `{"G":{"a" 1}}`, `{"G":[}]}`, `{"G":nul}`, `{"Z":1}`, `[]`, `1`,
}

var strict = []string{`{"a":1}`, `{"A":null}`, `null`}

func TestRefuses(t *testing.T) {
	for _, text := range refused {
		_, err := decode([]byte(text))
		require.Error(t, err, "%s", text)
		require.Error(t, standard([]byte(text), &outer{}), "%s", text)
	}
	for _, text := range strict {
		_, err := decode([]byte(text))
		require.Error(t, err, "%s", text)
	}
}

func TestFail(t *testing.T) {
	mine, r := errors.New("mine"), jsonread.New([]byte(`[1,2]`))
	r.Array(func() { r.Uint(9); r.Fail(mine) })
	require.ErrorIs(t, r.End(), mine)
	require.Zero(t, r.Uint(9))
	require.Empty(t, r.String())
	require.Nil(t, r.Raw())
}

// A string that ends with a backslash has no end, and no byte behind the text is
// touched, wherever the string stands.
func TestBackslashAtTheEnd(t *testing.T) {
	for _, text := range []string{`"\`, `"a\`, `["\`, `{"G":"\`, `{"\`} {
		exact := slices.Clip([]byte(text))
		r := jsonread.New(exact)
		require.Nil(t, r.Raw(), "%s", text)
		require.Error(t, r.End(), "%s", text)
		_, err := decode(exact)
		require.Error(t, err, "%s", text)
	}
}

// standard is how encoding/json reads the same.
func standard(data []byte, o *outer) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(o); err != nil {
		return err
	}
	if !json.Valid(data) {
		return errors.New("something behind")
	}
	return nil
}

// FuzzReader compares with encoding/json: what is read is read alike.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"A":1,"B":-2,"C":"\u00e9","D":[1,2],"E":[{"Name":"x","On":true}],"F":null,"G":{"a":[1]}}`))
	for _, text := range refused {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(data)
		if err != nil || bytes.Count(data, []byte(`:[`))+bytes.Count(data, []byte(`:{`)) > 4 {
			return // encoding/json merges the lists and objects of a field that is given twice
		}
		var want outer
		require.NoError(t, standard(data, &want))
		gotText, err := json.Marshal(got)
		require.NoError(t, err)
		wantText, err := json.Marshal(want)
		require.NoError(t, err)
		require.Equal(t, string(wantText), string(gotText))
	})
}
