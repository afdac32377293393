package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/rekindledb/rekindle/bench/child"
)

// firstAckTimeout bounds the time from the start of a child to its first
// acknowledgement: it has to recover the database before that.
const firstAckTimeout = time.Minute

var (
	errTimeout = errors.New("the child acknowledged nothing in time")
	errEnded   = errors.New("the child ended by itself")
)

// process is a running child and what it acknowledges.
type process struct {
	child   *child.Process
	first   chan struct{} // closed at the first acknowledgement
	done    chan struct{} // closed at the end of the pipe; then acks and readErr are set
	acks    Acks
	readErr error
}

// startChild runs the executable with the arguments and, as the last one, the
// configuration.
func startChild(executable string, args []string, c ChildConfig, stderr io.Writer) (*process, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	args = append(args[:len(args):len(args)], string(config))
	p := &process{first: make(chan struct{}), done: make(chan struct{})}
	p.child, err = child.Start(executable, args, nil, stderr)
	if err != nil {
		return nil, err
	}
	go p.read(p.child.Output())
	return p, nil
}

func (p *process) read(pipe io.ReadCloser) {
	defer close(p.done)
	p.acks, p.readErr = readAcks(pipe, func() { close(p.first) })
	p.readErr = errors.Join(p.readErr, pipe.Close())
}

// runFor lets the child run for d from its first acknowledgement and returns
// how long it really ran; an error if it ended by itself or ctx did.
func (p *process) runFor(ctx context.Context, d time.Duration) (time.Duration, error) {
	if err := p.await(ctx, p.first, firstAckTimeout); err != nil {
		return 0, err
	}
	start := time.Now()
	err := p.await(ctx, nil, d)
	if errors.Is(err, errTimeout) {
		err = nil
	}
	return time.Since(start), err
}

// await returns nil when event happens, else the reason why it will not.
func (p *process) await(ctx context.Context, event <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-event:
		return nil
	case <-timer.C:
		return errTimeout
	case <-p.done:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill ends the child with SIGKILL and returns everything it acknowledged.
func (p *process) kill() (Acks, error) {
	err := p.child.Kill()
	<-p.done
	return p.acks, errors.Join(err, p.readErr)
}
