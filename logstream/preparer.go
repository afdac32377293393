package logstream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/rekindledb/rekindle/internal/fault"
)

// preparer is the background goroutine that keeps space ready ahead of the
// frames and begins the incarnation. It sleeps until it is asked.
type preparer struct {
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	asked  uint64        // number of asks
	served uint64        // asks before the start of the last pass
	err    error         // of the last pass
	passed chan struct{} // closed at the end of the next pass

	// Guarded by the commit latch.
	kicked bool // a pass will come, or the last one failed and an ask is needed
}

func (p *preparer) start(l *Log) {
	p.wake = make(chan struct{}, 1)
	p.stop = make(chan struct{})
	p.done = make(chan struct{})
	p.passed = make(chan struct{})
	go l.prepareLoop()
}

func (p *preparer) close() {
	close(p.stop)
	<-p.done
}

// kick asks for a pass that nobody waits for. Caller holds the latch.
func (p *preparer) kick() {
	if !p.kicked {
		p.kicked = true
		signal(p.wake)
	}
}

// ask asks for a pass, also after one that failed.
func (p *preparer) ask() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	signal(p.wake)
	return p.asked
}

// wait returns the outcome of the pass that serves an ask. err is not nil when
// the wait ended without one.
func (p *preparer) wait(ctx context.Context, ask uint64) (outcome, err error) {
	for {
		p.mu.Lock()
		served, outcome, passed := p.served >= ask, p.err, p.passed
		p.mu.Unlock()
		if served {
			return outcome, nil
		}
		select {
		case <-passed:
		case <-p.stop:
			return nil, fault.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Log) prepareLoop() {
	p := &l.preparer
	defer close(p.done)
	for {
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
		p.mu.Lock()
		asked := p.asked
		p.mu.Unlock()
		l.endPass(asked, l.prepare())
	}
}

// endPass tells the outcome to those who wait. After an error only an ask
// leads to another try.
func (l *Log) endPass(asked uint64, err error) {
	if err != nil && !errors.Is(err, fault.ErrNoSpace) {
		l.fail(err)
	}
	if err != nil {
		l.opt.Logger.Warn("no space prepared for the log", "error", err)
		l.latch.Lock()
		l.preparer.kicked = true
		l.latch.Unlock()
	}
	p := &l.preparer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served, p.err = asked, err
	close(p.passed)
	p.passed = make(chan struct{})
}

// prepare makes one pass over all streams.
func (l *Log) prepare() error {
	if l.Failed() != nil {
		return l.Failed()
	}
	targets, begun := l.spaceTargets()
	if !begun {
		if err := l.makeDir(); err != nil {
			return err
		}
	}
	if err := l.prepareStreams(targets); err != nil || begun {
		return err
	}
	return l.begin()
}

// prepareStreams goes on with the other streams when one finds no space.
func (l *Log) prepareStreams(targets []Position) error {
	var full []error
	for i, s := range l.streams {
		err := s.Prepare(targets[i])
		if err == nil {
			continue
		}
		err = fmt.Errorf("preparing space in stream %d: %w", i, err)
		if !errors.Is(err, fault.ErrNoSpace) {
			return afterNoSpace(err, full)
		}
		full = append(full, err)
	}
	return errors.Join(full...)
}

// afterNoSpace mentions in an error what other streams lacked before. It must not
// be taken for a mere lack of space.
func afterNoSpace(err error, full []error) error {
	if len(full) == 0 {
		return err
	}
	return fmt.Errorf("%w (before that: %v)", err, errors.Join(full...))
}

// makeDir makes the directory durable, also one that a killed process left.
func (l *Log) makeDir() error {
	err := l.opt.FS.MkdirAll(l.opt.Dir)
	if err == nil {
		err = l.opt.FS.SyncDir(filepath.Dir(l.opt.Dir))
	}
	if err != nil {
		return noSpace(err)
	}
	return nil
}

// begin starts the incarnation in all streams, durably, before any round of it
// is written: so any of its rounds proves that all its first segments exist.
func (l *Log) begin() error {
	if err := l.startLife(); err != nil {
		return err
	}
	for i, s := range l.streams {
		if err := s.Begin(&l.current); err != nil {
			return fmt.Errorf("starting a segment in stream %d: %w", i, err)
		}
	}
	l.latch.Lock()
	defer l.latch.Unlock()
	for i := range l.tails {
		l.tails[i] = l.dataStart(l.goOn(l.tails[i]))
	}
	l.open.reset(l.open.number, l.tails, 0)
	l.begun = true
	return nil
}
