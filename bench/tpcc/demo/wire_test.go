package demo

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

var wireResults = []tpcc.Result{
	{Kind: tpcc.KindNewOrder, Receipts: []tpcc.Receipt{
		{Kind: tpcc.KindNewOrder, Warehouse: 1, District: 2, ID: 3001, Number: 11, Amount: 12345},
	}},
	{Kind: tpcc.KindNewOrder, RolledBack: true},
	{Kind: tpcc.KindPayment, Receipts: []tpcc.Receipt{
		{Kind: tpcc.KindPayment, Warehouse: 7, District: 8, ID: 9, Number: 2, Amount: -1},
	}},
	{Kind: tpcc.KindDelivery, Receipts: []tpcc.Receipt{
		{Kind: tpcc.KindDelivery, Warehouse: 1, District: 1, ID: 5, Number: 10},
		{Kind: tpcc.KindDelivery, Warehouse: 1, District: 2, ID: 6, Number: 10},
	}},
	{Kind: tpcc.KindDelivery},
	{Kind: tpcc.KindStockLevel},
}

func encodeAll(results []tpcc.Result) []byte {
	var b []byte
	for _, r := range results {
		b = appendResult(b, r)
	}
	return b
}

func TestAcksComeBack(t *testing.T) {
	pipe := encodeAll(wireResults)
	require.Len(t, pipe, 7*recordSize)
	firsts := 0
	acks, err := readAcks(bytes.NewReader(pipe), func() { firsts++ })
	require.NoError(t, err)
	require.Equal(t, 1, firsts)
	require.EqualValues(t, 6, acks.Transactions)
	require.EqualValues(t, 1, acks.NewOrders)
	require.EqualValues(t, 1, acks.RolledBack)
	var want []tpcc.Receipt
	for _, r := range wireResults {
		want = append(want, r.Receipts...)
	}
	require.Equal(t, want, acks.Receipts)
}

func TestRecordLayout(t *testing.T) {
	got := hex.EncodeToString(appendResult(nil, wireResults[0]))
	require.Equal(t, "01010000"+"01000000"+"02000000"+"b90b0000"+"0b000000"+"00000000"+"3930000000000000", got)
}

func TestLargestResultFitsAnAtomicWrite(t *testing.T) {
	const pipeBuf = 512 // POSIX's least; Linux has 4096
	districts := tpcc.Full(1).Districts
	r := tpcc.Result{Kind: tpcc.KindDelivery, Receipts: make([]tpcc.Receipt, districts)}
	require.LessOrEqual(t, len(appendResult(nil, r)), pipeBuf)
}

func TestDamagedPipe(t *testing.T) {
	pipe := encodeAll(wireResults)
	_, err := readAcks(bytes.NewReader(pipe[:len(pipe)-1]), func() {})
	require.ErrorContains(t, err, "unexpected EOF")
	for _, at := range []int{0, 1, 2, 3, 20} {
		bad := bytes.Clone(pipe)
		bad[recordSize+at] = 0xff
		acks, err := readAcks(bytes.NewReader(bad), func() {})
		require.ErrorContains(t, err, "not a record", "byte %d", at)
		require.EqualValues(t, 1, acks.Transactions)
	}
	acks, err := readAcks(bytes.NewReader(nil), func() { t.Error("nothing was acknowledged") })
	require.NoError(t, err)
	require.Zero(t, acks.Transactions)
}

func FuzzDecodeRecord(f *testing.F) {
	pipe := encodeAll(wireResults)
	for at := 0; at < len(pipe); at += recordSize {
		f.Add(pipe[at : at+recordSize])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != recordSize {
			return
		}
		r, flags, err := decodeRecord(b)
		if err == nil {
			require.Equal(t, b, appendRecord(nil, r, flags))
		}
	})
}
