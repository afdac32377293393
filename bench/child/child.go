// Package child runs a process that is there to be killed.
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Process is a running child. It dies with its parent where the system can do
// that (Linux). Output may be read by one goroutine while another one calls
// Kill.
type Process struct {
	cmd    *exec.Cmd
	output *os.File
}

// Start runs an executable with arguments, and env in addition to the
// parent's environment.
func Start(executable string, args, env []string, stderr io.Writer) (*Process, error) {
	// Not StdoutPipe: its Wait closes the pipe, and what the child wrote
	// before it died is to be read to the end.
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to the child: %w", err)
	}
	cmd := exec.Command(executable, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = writer, stderr
	dieWithParent(cmd)
	err = cmd.Start()
	// The child has its own copy; the pipe must end with the child.
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the child: %w", err), reader.Close())
	}
	return &Process{cmd: cmd, output: reader}, nil
}

// Output is the child's standard output. It outlives the child and ends with
// io.EOF once the child is gone and everything is read; then it is to be
// closed.
func (p *Process) Output() io.ReadCloser { return p.output }

// Kill ends the child with SIGKILL and waits until it is gone. A child that
// has ended by itself, with whatever exit code, is no error.
func (p *Process) Kill() error {
	killErr := p.cmd.Process.Kill()
	if errors.Is(killErr, os.ErrProcessDone) {
		killErr = nil
	}
	waitErr := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) {
		waitErr = nil
	}
	return errors.Join(killErr, waitErr)
}
