package vfs

import (
	"io/fs"

	"github.com/cespare/xxhash/v2"
)

// MaxPacedStep is the largest step of a PacedWriter, in bytes.
const MaxPacedStep = 1 << 20

// PacedWriter writes a new file from its start to its end in small steps, each
// on the medium before the next is written. So a commit's flush of another file
// never queues behind more than one step. It keeps size and checksum of all
// that was written. It is for one goroutine, and does not close the file.
type PacedWriter struct {
	file    File
	step    int
	buf     []byte // filled part of the current step
	flushed int64
	sum     xxhash.Digest
	err     error // the first error, or fs.ErrClosed after Finish
}

// NewPacedWriter returns a writer with steps of the given size in bytes; 0 or a
// size above MaxPacedStep gives MaxPacedStep.
func NewPacedWriter(f File, step int) *PacedWriter {
	if step <= 0 || step > MaxPacedStep {
		step = MaxPacedStep
	}
	w := &PacedWriter{file: f, step: step}
	w.sum.Reset()
	return w
}

// Write appends p. After an error the writer does nothing more and returns that
// error each time; what a failed flush left of the file is unknown.
func (w *PacedWriter) Write(p []byte) (written int, err error) {
	for w.err == nil && written < len(p) {
		part := p[written:min(len(p), written+w.step-len(w.buf))]
		w.buf = append(w.buf, part...)
		w.sum.Write(part) // never fails
		written += len(part)
		if len(w.buf) == w.step {
			w.err = w.flushStep()
		}
	}
	return written, w.err
}

// flushStep puts the buffer on the medium.
func (w *PacedWriter) flushStep() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.file.Datasync()
}

func (w *PacedWriter) flush() error {
	_, err := w.file.WriteAt(w.buf, w.flushed)
	w.flushed += int64(len(w.buf))
	w.buf = w.buf[:0]
	return err
}

// Finish writes the rest and makes the file durable with its metadata. Calls
// after it fail with fs.ErrClosed.
func (w *PacedWriter) Finish() error {
	if w.err != nil {
		return w.err
	}
	if w.err = w.finish(); w.err != nil {
		return w.err
	}
	w.err = pathError("write", w.file.Name(), fs.ErrClosed)
	return nil
}

func (w *PacedWriter) finish() error {
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.file.Sync()
}

// Size returns the number of bytes written so far, flushed or not.
func (w *PacedWriter) Size() int64 { return w.flushed + int64(len(w.buf)) }

// Sum64 returns the xxhash64 (seed 0) of the bytes written so far.
func (w *PacedWriter) Sum64() uint64 { return w.sum.Sum64() }
