package keyenc_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rekindledb/rekindle/index/keyenc"
)

// component is one component type under test: values, their order, and the
// encoding. Values that the encoding does not tell apart compare equal.
type component struct {
	name    string
	edges   []any
	random  func(*rand.Rand) any
	compare func(a, b any) int
	append  func(dst []byte, v any) []byte
	decode  func(key []byte) (v any, rest []byte, err error)
}

func components() []component {
	list := []component{boolComponent(), float64Component(), float32Component(), stringComponent(), timeComponent()}
	for _, width := range []int{1, 2, 4, 8} {
		list = append(list, intComponent(width), uintComponent(width))
	}
	for _, c := range list[:len(list):len(list)] {
		list = append(list, nullable(c))
	}
	return list
}

func boolComponent() component {
	return component{
		name:    "bool",
		edges:   []any{false, true},
		random:  func(r *rand.Rand) any { return r.IntN(2) == 1 },
		compare: func(a, b any) int { return cmp.Compare(rank(a.(bool)), rank(b.(bool))) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendBool(dst, v.(bool)) },
		decode:  decoder(keyenc.DecodeBool),
	}
}

func intComponent(width int) component {
	shift := 64 - 8*width
	limit := int64(math.MaxInt64) >> shift
	return component{
		name:    fmt.Sprintf("int%d", 8*width),
		edges:   []any{-limit - 1, -limit, int64(-1), int64(0), int64(1), limit - 1, limit},
		random:  func(r *rand.Rand) any { return int64(r.Uint64()) >> (shift + r.IntN(8*width)) },
		compare: func(a, b any) int { return cmp.Compare(a.(int64), b.(int64)) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendInt(dst, v.(int64), width) },
		decode: decoder(func(key []byte) (int64, []byte, error) {
			return keyenc.DecodeInt(key, width)
		}),
	}
}

func uintComponent(width int) component {
	shift := 64 - 8*width
	limit := uint64(math.MaxUint64) >> shift
	return component{
		name:    fmt.Sprintf("uint%d", 8*width),
		edges:   []any{uint64(0), uint64(1), limit >> 1, limit>>1 + 1, limit - 1, limit},
		random:  func(r *rand.Rand) any { return r.Uint64() >> (shift + r.IntN(8*width)) },
		compare: func(a, b any) int { return cmp.Compare(a.(uint64), b.(uint64)) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendUint(dst, v.(uint64), width) },
		decode: decoder(func(key []byte) (uint64, []byte, error) {
			return keyenc.DecodeUint(key, width)
		}),
	}
}

func float64Component() component {
	return component{
		name: "float64",
		edges: []any{math.Inf(-1), -math.MaxFloat64, -1.5, -1.0, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0.0,
			math.SmallestNonzeroFloat64, 1.0, math.MaxFloat64, math.Inf(1), math.NaN(), math.Float64frombits(0xFFF8000000000001)},
		random:  func(r *rand.Rand) any { return math.Float64frombits(r.Uint64()) },
		compare: func(a, b any) int { return compareFloat(a.(float64), b.(float64)) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendFloat64(dst, v.(float64)) },
		decode:  decoder(keyenc.DecodeFloat64),
	}
}

func float32Component() component {
	return component{
		name: "float32",
		edges: []any{float32(math.Inf(-1)), float32(-math.MaxFloat32), float32(-1), float32(-math.SmallestNonzeroFloat32),
			float32(math.Copysign(0, -1)), float32(0), float32(math.SmallestNonzeroFloat32), float32(1),
			float32(math.MaxFloat32), float32(math.Inf(1)), math.Float32frombits(0x7FC00001), math.Float32frombits(0xFFC00000)},
		random:  func(r *rand.Rand) any { return math.Float32frombits(r.Uint32()) },
		compare: func(a, b any) int { return compareFloat(float64(a.(float32)), float64(b.(float32))) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendFloat32(dst, v.(float32)) },
		decode:  decoder(keyenc.DecodeFloat32),
	}
}

func stringComponent() component {
	return component{
		name: "string",
		edges: []any{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x00", "a\x00\x01", "a\x00b",
			"a\x00\xff", "a\x01", "ab", "b", "\xff", "\xff\x00", "\xff\xff", strings.Repeat("\x00", 40), strings.Repeat("x", 300)},
		random:  func(r *rand.Rand) any { return randomString(r) },
		compare: func(a, b any) int { return strings.Compare(a.(string), b.(string)) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendString(dst, v.(string)) },
		decode: func(key []byte) (any, []byte, error) {
			v, rest, err := keyenc.DecodeBytes(nil, key)
			return string(v), rest, err
		},
	}
}

func timeComponent() component {
	zone := time.FixedZone("east", 3*3600)
	return component{
		name: "time",
		edges: []any{time.Time{}, time.Unix(0, 0), time.Unix(0, -1), time.Unix(-1, 0), time.Unix(-1<<40, 5), time.Unix(1<<40, 999_999_999),
			time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, zone), time.Date(-5000, 1, 1, 0, 0, 0, 1, time.UTC),
			time.Date(99999, 1, 1, 0, 0, 0, 0, zone), time.Now(), keyenc.Instant{Sec: math.MinInt64}.Time(),
			keyenc.Instant{Sec: math.MaxInt64, Nsec: 999_999_999}.Time()},
		random: func(r *rand.Rand) any {
			return time.Unix(int64(r.Uint64())>>r.IntN(64), r.Int64N(1e9)).In(zone)
		},
		compare: func(a, b any) int { return a.(time.Time).Compare(b.(time.Time)) },
		append:  func(dst []byte, v any) []byte { return keyenc.AppendTime(dst, v.(time.Time)) },
		decode:  decoder(keyenc.DecodeTime),
	}
}

// nullable is c with NULL, which is nil here.
func nullable(c component) component {
	n := c
	n.name = "nullable " + c.name
	n.edges = append([]any{nil}, c.edges...)
	n.random = func(r *rand.Rand) any {
		if r.IntN(4) == 0 {
			return nil
		}
		return c.random(r)
	}
	n.compare = func(a, b any) int {
		if a == nil || b == nil {
			return cmp.Compare(rank(a != nil), rank(b != nil))
		}
		return c.compare(a, b)
	}
	n.append = func(dst []byte, v any) []byte {
		if v == nil {
			return keyenc.AppendNull(dst)
		}
		return c.append(keyenc.AppendPresent(dst), v)
	}
	n.decode = func(key []byte) (any, []byte, error) {
		null, rest, err := keyenc.DecodeNull(key)
		if null || err != nil {
			return nil, rest, err
		}
		return c.decode(rest)
	}
	return n
}

func decoder[T any](decode func([]byte) (T, []byte, error)) func([]byte) (any, []byte, error) {
	return func(key []byte) (any, []byte, error) { return decode(key) }
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareFloat orders NaN last, unlike cmp.Compare.
func compareFloat(a, b float64) int {
	if a != a || b != b {
		return cmp.Compare(rank(a != a), rank(b != b))
	}
	return cmp.Compare(a, b)
}

// randomString prefers the bytes that matter to the encoding and short
// lengths, so that prefixes and equal strings are common.
func randomString(r *rand.Rand) string {
	b := make([]byte, r.IntN(6))
	for i := range b {
		b[i] = []byte{0, 1, 2, 'a', 0xFE, 0xFF}[r.IntN(6)]
	}
	return string(b)
}

// values returns the edges of c and n random values.
func (c component) values(r *rand.Rand, n int) []any {
	list := slices.Clone(c.edges)
	for range n {
		list = append(list, c.random(r))
	}
	return list
}
