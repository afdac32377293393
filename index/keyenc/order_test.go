package keyenc_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index/keyenc"
)

func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestOrder compares byte order with value order for every pair of values.
// Equal bytes only for equal values is the same statement as injectivity.
func TestOrder(t *testing.T) {
	for _, c := range components() {
		t.Run(c.name, func(t *testing.T) {
			values := c.values(newRand(t), 200)
			for _, a := range values {
				ka := c.append(nil, a)
				for _, b := range values {
					kb := c.append(nil, b)
					if bytes.Compare(ka, kb) != c.compare(a, b) {
						t.Fatalf("values %#v, %#v compare %d, keys % x, % x", a, b, c.compare(a, b), ka, kb)
					}
				}
			}
		})
	}
}

// TestSelfDelimiting checks that no encoding is a proper prefix of another.
func TestSelfDelimiting(t *testing.T) {
	for _, c := range components() {
		values := c.values(newRand(t), 100)
		for _, a := range values {
			for _, b := range values {
				ka, kb := c.append(nil, a), c.append(nil, b)
				require.False(t, len(ka) < len(kb) && bytes.HasPrefix(kb, ka), "%s: %#v %#v", c.name, a, b)
			}
		}
	}
}

// TestCompositeOrder compares keys of several components, of random types,
// with the lexicographic order of their values.
func TestCompositeOrder(t *testing.T) {
	r := newRand(t)
	all := components()
	for range 20_000 {
		parts := make([]component, 1+r.IntN(4))
		for i := range parts {
			parts[i] = all[r.IntN(len(all))]
		}
		va, ka := randomKey(r, parts)
		vb, kb := randomKey(r, parts)
		// Share a prefix of values often, so that later components decide.
		if shared := r.IntN(len(parts) + 1); shared > 0 {
			copy(vb, va[:shared])
			kb = appendKey(nil, parts, vb)
		}
		want := 0
		for i := 0; want == 0 && i < len(parts); i++ {
			want = parts[i].compare(va[i], vb[i])
		}
		if bytes.Compare(ka, kb) != want {
			t.Fatalf("values %#v, %#v compare %d, keys % x, % x", va, vb, want, ka, kb)
		}
	}
}

func randomKey(r *rand.Rand, parts []component) (values []any, key []byte) {
	for _, c := range parts {
		v := c.random(r)
		if r.IntN(3) == 0 {
			v = c.edges[r.IntN(len(c.edges))]
		}
		values = append(values, v)
	}
	return values, appendKey(nil, parts, values)
}

func appendKey(dst []byte, parts []component, values []any) []byte {
	for i, v := range values {
		dst = parts[i].append(dst, v)
	}
	return dst
}

// TestComposite checks pairs that a plain concatenation would confuse.
func TestComposite(t *testing.T) {
	pair := func(a, b string) []byte { return keyenc.AppendString(keyenc.AppendString(nil, a), b) }
	sorted := [][]byte{
		pair("", ""), pair("", "a"), pair("", "\xff"), pair("\x00", ""), pair("\x00\x01", ""), pair("\x00\xff", "\x00"),
		pair("a", ""), pair("a", "\x00"), pair("a", "\x01"), pair("a", "bc"), pair("a", "\xff"), pair("a\x00", ""), pair("a\x00", "b"),
		pair("a\x01", ""), pair("ab", ""), pair("ab", "c"), pair("\xff", ""), pair("\xff", "\xff"), pair("\xff\xff", ""),
	}
	for i := 1; i < len(sorted); i++ {
		require.Negative(t, bytes.Compare(sorted[i-1], sorted[i]), "keys %d and %d", i-1, i)
	}
}

func TestPrefixEnd(t *testing.T) {
	for _, tc := range []struct{ prefix, end string }{
		{"a", "b"}, {"a\xff", "b"}, {"a\xff\xff", "b"}, {"\x00", "\x01"}, {"\xfe\xff", "\xff"}, {"ab\x00", "ab\x01"},
	} {
		end, ok := keyenc.PrefixEnd([]byte(tc.prefix))
		require.True(t, ok, "%q", tc.prefix)
		require.Equal(t, tc.end, string(end), "%q", tc.prefix)
	}
	for _, open := range []string{"", "\xff", "\xff\xff\xff"} {
		end, ok := keyenc.PrefixEnd([]byte(open))
		require.False(t, ok, "%q", open)
		require.Empty(t, end)
	}
}

// TestPrefixEndBounds checks that the end is the least upper bound: every key
// lies below it exactly if it has the prefix or sorts before it.
func TestPrefixEndBounds(t *testing.T) {
	r := newRand(t)
	for range 50_000 {
		prefix, key := []byte(randomString(r)), []byte(randomString(r))
		if r.IntN(2) == 0 {
			key = append(bytes.Clone(prefix), key...)
		}
		end, ok := keyenc.AppendPrefixEnd([]byte("kept"), prefix)
		require.True(t, bytes.HasPrefix(end, []byte("kept")))
		inside := bytes.Compare(prefix, key) <= 0 && (!ok || bytes.Compare(key, end[4:]) < 0)
		require.Equal(t, bytes.HasPrefix(key, prefix), inside, "prefix % x key % x end % x", prefix, key, end)
	}
}

// TestBytesPrefix checks that the open component covers exactly the strings
// that begin with the value.
func TestBytesPrefix(t *testing.T) {
	r := newRand(t)
	for range 50_000 {
		begin, s := randomString(r), randomString(r)
		if r.IntN(2) == 0 {
			s = begin + s
		}
		key := keyenc.AppendString(nil, s)
		open := keyenc.AppendBytesPrefix(nil, []byte(begin))
		require.Equal(t, len(s) >= len(begin) && s[:len(begin)] == begin, bytes.HasPrefix(key, open), "%q %q", begin, s)
	}
}

func TestMatchBytes(t *testing.T) {
	r := newRand(t)
	for range 50_000 {
		a, b := randomString(r), randomString(r)
		key := append(keyenc.AppendString(nil, a), 'x')
		rest, ok := keyenc.MatchBytes(key, []byte(b))
		require.Equal(t, a == b, ok, "%q %q", a, b)
		if ok {
			require.Equal(t, "x", string(rest))
		}
	}
}

func TestInstant(t *testing.T) {
	require.Equal(t, keyenc.Instant{}, keyenc.InstantOf(time.Time{}))
	require.True(t, keyenc.Instant{}.Time() == time.Time{})
	require.Equal(t, keyenc.Instant{Sec: 62135596800, Nsec: 7}, keyenc.InstantOf(time.Unix(0, 7)))
	now := time.Now()
	require.True(t, keyenc.InstantOf(now).Time().Equal(now))
	require.Equal(t, time.UTC, keyenc.InstantOf(now).Time().Location())
}
