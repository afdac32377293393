package fault

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// OpenTransaction describes a transaction that has begun and not ended.
type OpenTransaction struct {
	Writable  bool
	Age       time.Duration // since it was first noticed, which is at most a second after it began
	Iterators int           // that are open
	Stack     []uintptr     // where it began, nil without tracing
}

// module is what the names of the engine's own functions begin with.
const module = "github.com/rekindledb/rekindle."

// Began returns where the transaction began: the stack of the call of Begin,
// View or Update, innermost function first, as "function\n\tfile:line\n". It is
// empty without tracing.
func (o *OpenTransaction) Began() string {
	var b strings.Builder
	o.eachFrame(func(f runtime.Frame) bool {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		return true
	})
	return b.String()
}

// eachFrame calls fn with the frames outside of the engine until it returns
// false.
func (o *OpenTransaction) eachFrame(fn func(runtime.Frame) bool) {
	if len(o.Stack) == 0 {
		return
	}
	frames := runtime.CallersFrames(o.Stack)
	for inside := true; ; {
		f, more := frames.Next()
		inside = inside && strings.HasPrefix(f.Function, module)
		if !inside && f.PC != 0 && !fn(f) || !more {
			return
		}
	}
}

// String is one line: what it is, its age, its iterators, the place of its
// beginning.
func (o *OpenTransaction) String() string {
	var b strings.Builder
	b.WriteString("read-only")
	if o.Writable {
		b.Reset()
		b.WriteString("writable")
	}
	fmt.Fprintf(&b, ", %v old", o.Age.Round(time.Millisecond))
	if o.Iterators > 0 {
		fmt.Fprintf(&b, ", open iterators: %d", o.Iterators)
	}
	o.eachFrame(func(f runtime.Frame) bool {
		fmt.Fprintf(&b, ", begun at %s:%d", f.File, f.Line)
		return false
	})
	return b.String()
}

// OpenTransactions names the transactions, oldest first, that Close had to end.
type OpenTransactions struct{ Transactions []OpenTransaction }

// namedTransactions is how many transactions the text of an error describes.
const namedTransactions = 5

func (e *OpenTransactions) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d", ErrOpenTransactions, len(e.Transactions))
	for i := range e.Transactions[:min(len(e.Transactions), namedTransactions)] {
		fmt.Fprintf(&b, "; %v", &e.Transactions[i])
	}
	if more := len(e.Transactions) - namedTransactions; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

func (e *OpenTransactions) Unwrap() error { return ErrOpenTransactions }
