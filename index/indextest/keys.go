package indextest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// keySpace draws keys of one shape, from few enough that they meet again.
type keySpace struct {
	name string
	draw func(*rand.Rand) string
}

func keySpaces() []keySpace {
	return []keySpace{
		{"integers", func(r *rand.Rand) string { return integerKey(r.Uint64N(500)) }},
		{"tiny", func(r *rand.Rand) string { return letters(r, r.IntN(4), "\x00\x01\x7f\xfe\xff") }},
		{"eight or so", func(r *rand.Rand) string { return letters(r, 6+r.IntN(5), "\x00\xff") }},
		{"zeros", func(r *rand.Rand) string { return strings.Repeat("\x00", r.IntN(20)) }},
		{"ones", func(r *rand.Rand) string { return strings.Repeat("\xff", r.IntN(20)) }},
		{"prefixed", func(r *rand.Rand) string { return fmt.Sprintf("region/customer/%d", r.IntN(300)) }},
		{"any", func(r *rand.Rand) string { return anyKey(r, 40) }},
		{"long", func(r *rand.Rand) string { return letters(r, r.IntN(300), "a") + letters(r, 2, "ab") }},
	}
}

// integerKey is the 8-byte key of a number.
func integerKey(n uint64) string {
	return string(binary.BigEndian.AppendUint64(nil, n))
}

func letters(r *rand.Rand, n int, alphabet string) string {
	key := make([]byte, n)
	for i := range key {
		key[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(key)
}

func anyKey(r *rand.Rand, limit int) string {
	key := make([]byte, r.IntN(limit+1))
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return string(key)
}

// wideKey is one of many, so that few meet.
func wideKey(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return fmt.Sprintf("customer/%d", r.IntN(1_000_000))
	}
	return integerKey(r.Uint64())
}
