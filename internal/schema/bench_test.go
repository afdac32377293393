package schema_test

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/schema"
)

type benchSmall struct {
	ID   int64 `rekindle:",pk"`
	Text string
}

type benchWide struct {
	Warehouse int32 `rekindle:",pk=1"`
	District  int32 `rekindle:",pk=2"`
	Order     int64 `rekindle:",pk=3"`
	Amount    float64
	Count     int32
	Open      bool
	Name      string `rekindle:",index"`
	Entered   time.Time
	Delivered schema.Null[time.Time]
	Carrier   *int32
	Note      string
	Tax       float64
}

func mapOf[T any](t testing.TB) (*schema.Table, *schema.Mapping) {
	def, m, err := schema.Map(reflect.TypeFor[T](), "t")
	require.NoError(t, err)
	return def, m
}

func benchmarkRow[T any](b *testing.B, v T) {
	_, m := mapOf[T](b)
	row, err := m.AppendRow(nil, unsafe.Pointer(&v))
	require.NoError(b, err)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(row))
		for b.Loop() {
			buf, _ = m.AppendRow(buf[:0], unsafe.Pointer(&v))
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		var out T
		for b.Loop() {
			_ = m.DecodeRow(row, unsafe.Pointer(&out))
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = m.Layout().Check(row)
		}
	})
}

func BenchmarkRow(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmarkRow(b, benchSmall{ID: 7, Text: strings.Repeat("x", 90)}) })
	b.Run("wide", func(b *testing.B) { benchmarkRow(b, benchWideValue()) })
}

func benchWideValue() benchWide {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return benchWide{Warehouse: 1, District: 2, Order: 3, Name: "BARBARBAR", Entered: now, Delivered: schema.Null[time.Time]{V: now, Valid: true}, Note: strings.Repeat("n", 24)}
}

func benchmarkKey[T any](b *testing.B, v T, index int) {
	_, m := mapOf[T](b)
	l := m.Layout()
	row, err := m.AppendRow(nil, unsafe.Pointer(&v))
	require.NoError(b, err)
	key := l.AppendKey(nil, index, row)
	buf := make([]byte, 0, 256)
	b.Run("appendFromRow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = l.AppendKey(buf[:0], index, row)
		}
	})
	b.Run("appendFromStruct", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = m.AppendKey(buf[:0], index, unsafe.Pointer(&v))
		}
	})
	b.Run("matches", func(b *testing.B) {
		b.ReportAllocs()
		ok := true
		for b.Loop() {
			ok = ok && l.KeyMatches(index, row, key)
		}
		require.True(b, ok)
	})
}

func BenchmarkKey(b *testing.B) {
	b.Run("int64", func(b *testing.B) { benchmarkKey(b, benchSmall{ID: 7}, 0) })
	b.Run("composite", func(b *testing.B) { benchmarkKey(b, benchWideValue(), 0) })
	b.Run("string", func(b *testing.B) { benchmarkKey(b, benchWideValue(), 1) })
}

func BenchmarkKeyValues(b *testing.B) {
	_, m := mapOf[benchSmall](b)
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for i := int64(1000); b.Loop(); i++ {
		buf, _ = m.Layout().AppendKeyValues(buf[:0], 0, []any{i}, false)
	}
}
