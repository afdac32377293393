package faulttest

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// Witness collects what the code under test says. It is safe for concurrent
// use.
type Witness struct {
	mu     sync.Mutex
	errors []error
	text   bytes.Buffer
}

// Logger returns a logger that the witness reads.
func (w *Witness) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// Write takes a record of the logger.
func (w *Witness) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// Note takes the error of a call and returns it; nil is fine.
func (w *Witness) Note(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errors = append(w.errors, err)
	}
	return err
}

// Returned reports whether a call has returned the fault.
func (w *Witness) Returned(e *Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.errors, func(err error) bool {
		return errors.Is(err, e) && errors.Is(err, errorfs.ErrInjected)
	})
}

// Logged reports whether the fault stands in a record of the logger.
func (w *Witness) Logged(e *Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), e.mark())
}

// Text returns everything that was said.
func (w *Witness) Text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, err := range w.errors {
		b.WriteString("returned: " + err.Error() + "\n")
	}
	return b.String() + w.text.String()
}
