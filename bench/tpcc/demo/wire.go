package demo

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// A record on the pipe, little-endian, recordSize bytes:
//
//	0   kind        uint8   tpcc.Kind
//	1   flags       uint8   flagLast, flagRolledBack
//	2   zero        uint16
//	4   warehouse   int32   0: the transaction left nothing to look for
//	8   district    int32
//	12  id          int32
//	16  number      int32
//	20  zero        uint32
//	24  amount      int64
//
// All records of a transaction go into one write of less than PIPE_BUF bytes,
// which is atomic: a kill leaves all of it in the pipe, or nothing.
const (
	recordSize = 32

	flagLast       = 1 << 0 // of its transaction
	flagRolledBack = 1 << 1
	flagsKnown     = flagLast | flagRolledBack
)

func appendResult(dst []byte, r tpcc.Result) []byte {
	receipts := r.Receipts
	if len(receipts) == 0 {
		receipts = []tpcc.Receipt{{Kind: r.Kind}}
	}
	for i, receipt := range receipts {
		var flags byte
		if i == len(receipts)-1 {
			flags |= flagLast
		}
		if r.RolledBack {
			flags |= flagRolledBack
		}
		dst = appendRecord(dst, receipt, flags)
	}
	return dst
}

func appendRecord(dst []byte, r tpcc.Receipt, flags byte) []byte {
	dst = append(dst, byte(r.Kind), flags, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Warehouse))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.District))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.ID))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Number))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint64(dst, uint64(r.Amount))
}

// decodeRecord takes exactly recordSize bytes.
func decodeRecord(b []byte) (tpcc.Receipt, byte, error) {
	word := func(at int) int32 { return int32(binary.LittleEndian.Uint32(b[at:])) }
	r := tpcc.Receipt{
		Kind:      tpcc.Kind(b[0]),
		Warehouse: word(4),
		District:  word(8),
		ID:        word(12),
		Number:    word(16),
		Amount:    tpcc.Cents(binary.LittleEndian.Uint64(b[24:])),
	}
	flags := b[1]
	if r.Kind < tpcc.KindNewOrder || r.Kind > tpcc.KindStockLevel || flags&^byte(flagsKnown) != 0 ||
		b[2] != 0 || b[3] != 0 || word(20) != 0 {
		return r, flags, fmt.Errorf("not a record of an acknowledgement: % x", b)
	}
	return r, flags, nil
}

// Acks is what a child acknowledged.
type Acks struct {
	Transactions int64 // of all kinds, rolled back new-orders included
	NewOrders    int64
	RolledBack   int64
	Receipts     []tpcc.Receipt
}

func (a *Acks) add(r tpcc.Receipt, flags byte) {
	switch {
	case flags&flagRolledBack != 0:
		a.RolledBack++
	case r.Warehouse != 0:
		a.Receipts = append(a.Receipts, r)
		if r.Kind == tpcc.KindNewOrder {
			a.NewOrders++
		}
	}
	if flags&flagLast != 0 {
		a.Transactions++
	}
}

// readAcks reads records to the end of the pipe and calls first, once, when
// the first one is there.
func readAcks(pipe io.Reader, first func()) (Acks, error) {
	var acks Acks
	in := bufio.NewReaderSize(pipe, 64<<10)
	record := make([]byte, recordSize)
	for n := 0; ; n++ {
		_, err := io.ReadFull(in, record)
		if errors.Is(err, io.EOF) {
			return acks, nil
		}
		if err != nil {
			return acks, fmt.Errorf("read acknowledgements: %w", err)
		}
		receipt, flags, err := decodeRecord(record)
		if err != nil {
			return acks, err
		}
		acks.add(receipt, flags)
		if n == 0 {
			first()
		}
	}
}
