package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is the least time between two updates of one phase.
const progressEvery = 100 * time.Millisecond

// progress shows one line that overwrites itself. Its zero writer shows
// nothing. Safe for concurrent use.
type progress struct {
	w io.Writer // nil: not a terminal

	mu    sync.Mutex
	phase string
	last  time.Time
}

func newProgress(s streams) *progress {
	if !s.terminal {
		return &progress{}
	}
	return &progress{w: s.err}
}

// show is best effort: a terminal that is gone is no reason to stop.
func (p *progress) show(phase string, done, total int64) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if phase == p.phase && done < total && time.Since(p.last) < progressEvery {
		return
	}
	p.phase, p.last = phase, time.Now()
	fmt.Fprintf(p.w, "\r\x1b[K%s %d of %d", phase, done, total)
}

// clear takes the line away, so that something else can be written.
func (p *progress) clear() {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.w, "\r\x1b[K")
}
