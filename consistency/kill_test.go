package consistency

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	rounds = flag.Int("rounds", 1, "rounds for each strategy and kind of operation")
	seed   = flag.Uint64("seed", 0, "seed of the first round, 0 for a random one")
)

const (
	lives    = 4
	lifetime = 60 * time.Millisecond
	patience = time.Minute // of the checker: the problem is a hard one in general
)

// TestLinearizable: see the documentation of the package. For more: -rounds 100.
func TestLinearizable(t *testing.T) {
	histories, operations, unknown := 0, 0, 0
	for round := range *rounds {
		first := *seed
		if first == 0 {
			first = rand.Uint64()
		}
		for _, strategy := range rekindle.IndexStrategies() {
			for _, many := range []bool{false, true} {
				s := settings{Strategy: strategy, Seed: first + uint64(round), Many: many}
				t.Run(fmt.Sprintf("%s, many %v, seed %d", strategy, many, s.Seed), func(t *testing.T) {
					s.Dir = filepath.Join(t.TempDir(), "db")
					h, lost := s.live(t)
					histories, operations, unknown = histories+1, operations+len(h.events)/2, unknown+lost
					require.Equal(t, porcupine.Ok, porcupine.CheckEventsTimeout(model(many), h.events, patience))
					require.Equal(t, porcupine.Illegal, porcupine.CheckEventsTimeout(model(many), wrongRead(t, h).events, patience))
				})
			}
		}
	}
	t.Logf("%d histories of %d operations, %d of them cut off by a kill", histories, operations, unknown)
}

// live runs clients in one process after the other. All but the last are killed.
func (s settings) live(t *testing.T) (h history, unknown int) {
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	cutOff := map[int]started{}
	for s.Life = range lives {
		s.Budget = int64(s.Life % 2)
		open := s.life(t, &h, lifetime/2+rand.N(lifetime), s.Life < lives-1)
		s.Seed = rng.Uint64()
		unknown += len(open)
		maps.Copy(cutOff, open)
	}
	h.settle(cutOff)
	return h, unknown
}

// settle ends the operations that were cut off at the end of time: whether, and
// when, they happened is for the model to say. One whose values nobody has read is
// left out, which spares the model most of the work: in any order of the others it
// may as well come last.
func (h *history) settle(cutOff map[int]started) {
	read := map[int64]bool{0: true} // a deletion may be what made a row missing
	for _, e := range h.events {
		if out, is := e.Value.(Outcome); is {
			for _, value := range out {
				read[value] = true
			}
		}
	}
	for id, c := range cutOff {
		seen := false
		for _, value := range c.op.Writes {
			seen = seen || read[value]
		}
		if seen {
			h.end(id, c.client, nil)
		} else {
			h.forget(id)
		}
	}
}

// started is an operation that has begun and not ended.
type started struct {
	client int
	op     Operation
}

// life runs clients in a process for some time and returns what it did not end.
func (s settings) life(t *testing.T, h *history, d time.Duration, kill bool) map[int]started {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), settingsVariable+"="+string(text))
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	require.NoError(t, err)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	open, begun := map[int]started{}, false
	for lines := bufio.NewReader(out); ; {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		var l line
		require.NoError(t, json.Unmarshal(text, &l))
		switch {
		case !begun: // it is open
			begun = true
			time.AfterFunc(d, func() {
				if kill {
					process.Process.Kill()
				} else {
					in.Close()
				}
			})
		case l.Call != nil:
			h.call(l.ID, l.Client, *l.Call)
			open[l.ID] = started{l.Client, *l.Call}
		default:
			if l.Out == nil {
				l.Out = Outcome{}
			}
			h.end(l.ID, l.Client, l.Out)
			delete(open, l.ID)
		}
	}
	err = process.Wait()
	if !kill {
		require.NoError(t, err)
		require.Empty(t, open)
	}
	return open
}

func (h *history) forget(id int) {
	for i, e := range h.events {
		if e.Id == id {
			h.events = append(h.events[:i], h.events[i+1:]...)
			return
		}
	}
}

// wrongRead changes the first read of a value into one of a value that was never
// written, which the checker has to notice.
func wrongRead(t *testing.T, h history) history {
	h.events = append([]porcupine.Event(nil), h.events...)
	for i, e := range h.events {
		if out, is := e.Value.(Outcome); is && len(out) > 0 && out[0] != 0 {
			h.events[i].Value = append(Outcome{1}, out[1:]...)
			return h
		}
	}
	t.Fatal("nobody has read anything")
	return h
}
