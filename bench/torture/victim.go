package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rekindledb/rekindle/bench/child"
)

const (
	// usualLife is the time that Running counts as, for a kill at a fraction of it.
	usualLife = 250 * time.Millisecond
	// longestLife is after what time a child is killed that is not where the round
	// aims at yet.
	longestLife = 1500 * time.Millisecond
	// backlog is how many messages may wait for the parent.
	backlog = 1024
)

var (
	errEnded  = errors.New("the process ended by itself")
	errHung   = errors.New("the process hangs")
	errBabble = errors.New("no message of the process")
)

// stage is where a child is.
type stage struct {
	phase Phase
	step  string
}

func (s stage) String() string {
	if s.step == "" {
		return string(s.phase)
	}
	return string(s.phase) + ": " + s.step
}

// clock knows how long phases take, from those that ended before a kill.
type clock map[Phase]time.Duration

func newClock() clock {
	return clock{Opening: 20 * time.Millisecond, Checkpointing: 20 * time.Millisecond, Compacting: 20 * time.Millisecond, Converting: 40 * time.Millisecond, Closing: 50 * time.Millisecond}
}

// observe lets the newer count more.
func (c clock) observe(p Phase, took time.Duration) { c[p] = (2*c[p] + took) / 3 }

func (c clock) wait(a aim) time.Duration {
	usual := c[a.phase]
	if a.phase == Running {
		usual = usualLife
	}
	return time.Duration(a.fraction * float64(usual))
}

// victim is a child that is there to be killed.
type victim struct {
	process  *child.Process
	messages chan message // closed at the end of the pipe, after readErr was set
	readErr  error

	ledger  *Ledger
	clock   clock
	work    Work
	acked   int64
	at      stage
	entered time.Time // the phase
	met     map[Phase]int
	opened  bool
}

func startVictim(c *Config, l *Life, ledger *Ledger, clk clock) (*victim, error) {
	config, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	args := append(c.Args[:len(c.Args):len(c.Args)], lifeTask, string(config))
	v := &victim{messages: make(chan message, backlog), ledger: ledger, clock: clk, met: map[Phase]int{}, at: stage{phase: Starting}}
	if v.process, err = child.Start(c.Executable, args, nil, c.Stderr); err != nil {
		return nil, err
	}
	go v.read(v.process.Output())
	return v, nil
}

// read reads to the end of the pipe. A last line without its end is one that the
// kill cut short.
func (v *victim) read(pipe io.ReadCloser) {
	defer close(v.messages)
	lines := bufio.NewReaderSize(pipe, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			v.readErr = errors.Join(err, pipe.Close())
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			v.readErr = errors.Join(fmt.Errorf("%w: %w", errBabble, err), pipe.Close())
			return
		}
		v.messages <- m
	}
}

// run lets the child live as long as the aim says, kills it and returns where
// that was.
func (v *victim) run(ctx context.Context, a aim, patience time.Duration) (stage, error) {
	err := v.await(ctx, a, patience)
	err = errors.Join(err, v.process.Kill())
	for m := range v.messages {
		v.note(m)
	}
	err = errors.Join(err, v.readErr)
	if err != nil {
		err = fmt.Errorf("%v: %w", v.at, err)
	}
	return v.at, err
}

// await returns when it is time to kill, or when the child has closed the
// database, with an error if the child is not well.
func (v *victim) await(ctx context.Context, a aim, patience time.Duration) error {
	hung := time.NewTimer(patience)
	defer hung.Stop()
	var shot <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hung.C:
			return errHung
		case <-shot:
			return nil
		case m, ok := <-v.messages:
			switch {
			case !ok && v.met[Closed] > 0:
				return nil
			case !ok:
				return errEnded
			}
			v.note(m)
			switch {
			case m.Phase == a.phase && v.met[a.phase] == a.nth && m.Step == "":
				shot = time.After(v.clock.wait(a))
			case m.Phase == Running && shot == nil:
				shot = time.After(longestLife)
			}
		}
	}
}

func (v *victim) note(m message) {
	switch {
	case m.Ack != nil:
		v.acked++
		v.ledger.ack(*m.Ack)
	case m.Settle != "":
		v.ledger.settle(m.Settle)
	case m.Work != nil:
		v.work.add(*m.Work)
	case m.Step != "":
		v.at.step = m.Step
	default:
		v.enter(m.Phase)
	}
}

func (v *victim) enter(p Phase) {
	now := time.Now()
	if v.at.phase != Running && v.at.phase != Starting {
		v.clock.observe(v.at.phase, now.Sub(v.entered))
	}
	v.at, v.entered = stage{phase: p}, now
	v.met[p]++
	switch p {
	case Running:
		v.opened = true
	case Closed:
		v.ledger.settleAll()
	}
}
