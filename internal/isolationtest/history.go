package isolationtest

import "fmt"

// Outcome is how a transaction ended.
type Outcome uint8

// Outcomes. One that is Unknown may have been committed at any time after its
// beginning; what it read counts for nothing.
const (
	Committed Outcome = iota
	Aborted
	Unknown
)

// Op is one operation of a transaction: an append, or a read with the list that
// it returned.
type Op struct {
	Key    int64
	Append int64 // 0 for a read
	List   []int64
}

// Append returns an append.
func Append(key, value int64) Op { return Op{Key: key, Append: value} }

// Read returns a read.
func Read(key int64, list ...int64) Op { return Op{Key: key, List: list} }

func (o Op) String() string {
	if o.Append != 0 {
		return fmt.Sprintf("append(%d, %d)", o.Key, o.Append)
	}
	return fmt.Sprintf("read(%d) %v", o.Key, o.List)
}

// Tx is a transaction as its client saw it. Begin and End are readings of a clock
// that all clients share, taken before the transaction began and after its
// outcome was known; both 0 if there was no clock.
type Tx struct {
	Begin, End int64
	Outcome    Outcome
	Ops        []Op
}

// version names a list by its key and last value.
type version struct{ key, value int64 }

// writer is the transaction that appended a value. last says that it appended no
// other one to the key later.
type writer struct {
	tx   int
	last bool
}

// history is what Check works on.
type history struct {
	txs     []Tx
	writers map[version]writer
	orders  map[int64][]int64 // per key: the longest list read
	unseen  map[int64][]int   // per key: committed writers of values that are not in there
	found   []Anomaly
}

func newHistory(txs []Tx) *history {
	h := &history{txs: txs, writers: map[version]writer{}, orders: map[int64][]int64{}, unseen: map[int64][]int{}}
	for i := range txs {
		h.addWrites(i)
	}
	for i := range txs {
		if txs[i].Outcome == Committed {
			h.addReads(i)
		}
	}
	h.findUnseen()
	return h
}

func (h *history) findUnseen() {
	seen := map[version]bool{}
	for key, list := range h.orders {
		for _, value := range list {
			seen[version{key, value}] = true
		}
	}
	for v, w := range h.writers {
		if h.txs[w.tx].Outcome == Committed && !seen[v] {
			h.unseen[v.key] = append(h.unseen[v.key], w.tx)
		}
	}
}

func (h *history) addWrites(tx int) {
	last := map[int64]int64{}
	for _, o := range h.txs[tx].Ops {
		if o.Append == 0 {
			continue
		}
		if before, is := last[o.Key]; is {
			h.writers[version{o.Key, before}] = writer{tx: tx}
		}
		v := version{o.Key, o.Append}
		if other, is := h.writers[v]; is {
			h.report(Malformed, []int{other.tx, tx}, "value %d of key %d is appended twice", v.value, v.key)
		}
		h.writers[v] = writer{tx, true}
		last[o.Key] = o.Append
	}
}

// addReads finds the longest lists. A transaction's own appends come after what it
// read of others, and are no news to them until it commits.
func (h *history) addReads(tx int) {
	for _, o := range h.txs[tx].Ops {
		if o.Append == 0 && len(o.List) > len(h.orders[o.Key]) {
			h.orders[o.Key] = o.List
		}
	}
}

func (h *history) report(c Class, txs []int, format string, args ...any) {
	h.found = append(h.found, Anomaly{Class: c, Txs: txs, Text: fmt.Sprintf(format, args...)})
}
