package isolationtest

import (
	"fmt"
	"strings"
)

// Class is a kind of anomaly.
type Class uint8

// Classes, the worst first. Names in brackets are those of Adya and of later work.
const (
	// Malformed: the history cannot be one of lists.
	Malformed Class = iota
	// Internal: a transaction did not see its own appends, or not the same list
	// again.
	Internal
	// OrderClash: two reads saw lists of which neither continues the other.
	OrderClash
	// DirtyWrite [G0]: a cycle of ww, or the appends of one transaction mixed with
	// others'.
	DirtyWrite
	// AbortedRead [G1a]: a value was read that was never committed.
	AbortedRead
	// IntermediateRead [G1b]: a list was read that its transaction went on to
	// append to.
	IntermediateRead
	// CircularFlow [G1c]: a cycle of ww and wr.
	CircularFlow
	// ReadSkew [G-single]: a cycle with exactly one rw. Lost updates are that too.
	ReadSkew
	// LongFork [G-nonadjacent]: a cycle with several rw, no two of them next to
	// each other: transactions disagree about the order of others.
	LongFork
	// Skew [G2-item]: any other cycle. Write skew is that.
	Skew
	classes
)

func (c Class) String() string {
	return [classes]string{
		"malformed", "internal", "order clash", "dirty write (G0)", "aborted read (G1a)", "intermediate read (G1b)",
		"circular flow (G1c)", "read skew (G-single)", "long fork (G-nonadjacent)", "skew (G2-item)",
	}[c]
}

// Anomaly is something in a history that a serial one could not have.
type Anomaly struct {
	Class   Class
	Ordered bool  // the cycle has the order of time in it
	Txs     []int // those that take part, a cycle in its order
	Text    string
}

func (a Anomaly) String() string {
	var b strings.Builder
	b.WriteString(a.Class.String())
	if a.Ordered {
		b.WriteString(" against the order of time")
	}
	fmt.Fprintf(&b, ", transactions %v: %s", a.Txs, a.Text)
	return b.String()
}

// Snapshot reports whether snapshot isolation allows the anomaly.
func (a Anomaly) Snapshot() bool { return a.Class == Skew }
