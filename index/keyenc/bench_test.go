package keyenc_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rekindledb/rekindle/index/keyenc"
)

func BenchmarkAppend(b *testing.B) {
	long := strings.Repeat("x", 90)
	now := time.Now()
	for _, bc := range []struct {
		name string
		run  func(dst []byte, i int) []byte
	}{
		{"int64", func(dst []byte, i int) []byte { return keyenc.AppendInt64(dst, int64(i)) }},
		{"float64", func(dst []byte, i int) []byte { return keyenc.AppendFloat64(dst, float64(i)) }},
		{"string16", func(dst []byte, i int) []byte { return keyenc.AppendString(dst, long[:16]) }},
		{"string90", func(dst []byte, i int) []byte { return keyenc.AppendString(dst, long) }},
		{"time", func(dst []byte, i int) []byte { return keyenc.AppendTime(dst, now) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]byte, 0, 256)
			for i := 0; b.Loop(); i++ {
				dst = bc.run(dst[:0], i)
			}
		})
	}
}
