package vfs

import (
	"strings"
	"sync"
)

// WithLog returns fs with a log: f gets every operation, with its outcome in
// Err, after it has run. It may be called by several goroutines at once.
// Filter by Kind.Mutates for a transcript of what a power cut could interrupt.
func WithLog(fs FS, f func(Op)) FS {
	return Wrap(fs, func(op Op, do func(Op) error) error {
		op.Err = do(op)
		f(op)
		return op.Err
	})
}

// Transcript collects operations as text, one a line, to be compared with a
// golden file: a missing sync is then a missing line. The zero value is ready.
type Transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

// Add appends an operation. It fits WithLog.
func (t *Transcript) Add(op Op) { t.line(op.String()) }

// Note appends a comment line that marks a step of the test.
func (t *Transcript) Note(text string) { t.line("# " + text) }

func (t *Transcript) line(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.WriteString(text + "\n")
}

func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
