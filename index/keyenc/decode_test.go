package keyenc_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
)

func TestRoundTrip(t *testing.T) {
	for _, c := range components() {
		for _, v := range c.values(newRand(t), 500) {
			key := append(c.append([]byte("before"), v), "rest"...)
			got, rest, err := c.decode(key[len("before"):])
			require.NoError(t, err, "%s %#v", c.name, v)
			require.Equal(t, "rest", string(rest), "%s %#v", c.name, v)
			require.True(t, same(c, v, got), "%s: %#v became %#v", c.name, v, got)
		}
	}
}

func same(c component, a, b any) bool {
	return (a == nil) == (b == nil) && c.compare(a, b) == 0
}

// TestDecodeCut cuts every encoding short.
func TestDecodeCut(t *testing.T) {
	for _, c := range components() {
		for _, v := range c.values(newRand(t), 20) {
			key := c.append(nil, v)
			for n := range key {
				_, _, err := c.decode(key[:n])
				require.ErrorIs(t, err, fault.ErrCorrupt, "%s %#v cut at %d", c.name, v, n)
			}
		}
	}
}

// TestDecodeMalformed has the bytes that no value encodes to.
func TestDecodeMalformed(t *testing.T) {
	byName := map[string]component{}
	for _, c := range components() {
		byName[c.name] = c
	}
	ones := bytes.Repeat([]byte{0xFF}, 12)
	for _, tc := range []struct {
		name string
		key  []byte
	}{
		{"bool", []byte{2}},
		{"nullable bool", []byte{2, 0}},
		{"nullable bool", []byte{1, 2}},
		{"float64", []byte{0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}}, // -0
		{"float64", ones[:8]},        // another NaN
		{"float64", make([]byte, 8)}, // a negative NaN
		{"float32", []byte{0x7F, 0xFF, 0xFF, 0xFF}},
		{"float32", ones[:4]},
		{"float32", make([]byte, 4)},
		{"string", []byte{'a', 0, 2}},
		{"string", []byte{'a', 0, 0}},
		{"string", []byte{'a', 0}},
		{"time", ones},
		{"time", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0x3B, 0x9A, 0xCA, 0x00}}, // 1e9 ns
	} {
		_, _, err := byName[tc.name].decode(tc.key)
		require.ErrorIs(t, err, fault.ErrCorrupt, "%s % x", tc.name, tc.key)
	}
}

// FuzzDecode: what a decoder accepts encodes to the same bytes again.
func FuzzDecode(f *testing.F) {
	for i, c := range components() {
		for _, v := range c.edges {
			f.Add(uint8(i), c.append(nil, v))
		}
	}
	list := components()
	f.Fuzz(func(t *testing.T, which uint8, key []byte) {
		c := list[int(which)%len(list)]
		v, rest, err := c.decode(key)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrCorrupt)
			return
		}
		require.Equal(t, key[:len(key)-len(rest)], c.append([]byte{}, v))
	})
}
