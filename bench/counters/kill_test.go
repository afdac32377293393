package counters

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

var (
	rounds = flag.Int("kill.rounds", 8, "rounds of TestKill for each strategy")
	seed   = flag.Uint64("kill.seed", 0, "seed of TestKill, 0 for a random one")
)

const (
	childVariable = "REKINDLE_CRASHTEST_CHILD" // directory: makes the test binary a child
	workers       = 8
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// options make segments, frames and checkpoints small, so that a short life
// meets all of them.
func options(strategy string, streams int) *rekindle.Options {
	return &rekindle.Options{SegmentBytes: 64 << 10, CheckpointBytes: 100 << 10, LogStreams: streams, IndexStrategy: strategy}
}

// child opens the database, says so, and runs all workers until it is killed.
// Every acknowledged transaction is a line on stdout.
func child(dir string) error {
	ctx := context.Background()
	var strategy string
	var streams int
	if _, err := fmt.Sscan(os.Getenv(childVariable+"_OPTIONS"), &strategy, &streams); err != nil {
		return err
	}
	db, err := rekindle.Open(ctx, dir, options(strategy, streams))
	if err != nil {
		return err
	}
	w, err := Open(ctx, db)
	if err != nil {
		return err
	}
	if _, err := db.CrossCheck(ctx); err != nil {
		return err
	}
	fmt.Println("open")
	var group sync.WaitGroup
	failures := make(chan error, workers+1)
	group.Go(func() { failures <- compact(ctx, db) })
	group.Go(func() { tellMoved(db) })
	for worker := range int32(workers) {
		group.Go(func() {
			for {
				seq, err := w.Step(ctx, worker)
				if err != nil {
					failures <- err
					return
				}
				os.Stdout.WriteString(fmt.Sprintf("ack %d %d\n", worker, seq))
			}
		})
	}
	return <-failures
}

// compact keeps the log as small as it may be.
func compact(ctx context.Context, db *rekindle.DB) error {
	for {
		if err := db.Compact(ctx); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// tellMoved says how many rows have been moved in the log.
func tellMoved(db *rekindle.DB) {
	for moved := int64(0); ; time.Sleep(time.Millisecond) {
		if now := db.Stats().CompactedRows; now != moved {
			os.Stdout.WriteString(fmt.Sprintf("moved %d\n", now-moved))
			moved = now
		}
	}
}

// TestKill kills a process that commits and compacts with all its might, again and again,
// often while it is still recovering, and checks everything each time.
func TestKill(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	for i, strategy := range rekindle.IndexStrategies() {
		t.Run(strategy, func(t *testing.T) {
			h := harness{dir: t.TempDir(), strategy: strategy, streams: 1 + 2*(i%2), rng: rand.New(rand.NewPCG(*seed, 0)), acked: map[int32]int64{}}
			for round := range *rounds {
				require.NoError(t, h.round(), "round %d", round)
			}
			t.Logf("%d transactions acknowledged, %d rounds killed while opening, %d rows moved in the log", h.total, h.early, h.moved)
		})
	}
}

type harness struct {
	dir      string
	strategy string
	streams  int
	rng      *rand.Rand
	acked    map[int32]int64
	total    int
	early    int
	moved    int64
}

func (h *harness) round() error {
	for h.rng.IntN(2) == 0 { // killed while opening, perhaps several times
		opened, err := h.run(time.Duration(h.rng.IntN(30)) * time.Millisecond)
		if err != nil {
			return err
		}
		if !opened {
			h.early++
		}
	}
	life := time.Duration(50+h.rng.IntN(250)) * time.Millisecond
	if h.rng.IntN(4) == 0 { // long enough for the log to be compacted
		life *= 3
	}
	if _, err := h.run(life); err != nil {
		return err
	}
	return h.check()
}

// run starts a child, kills it after some time and notes what it acknowledged.
func (h *harness) run(life time.Duration) (opened bool, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+h.dir, fmt.Sprintf("%s_OPTIONS=%s %d", childVariable, h.strategy, h.streams))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	kill := time.AfterFunc(life, func() { cmd.Process.Kill() })
	defer kill.Stop()
	opened, err = h.read(out)
	cmd.Wait() // the signal that ended it is no news
	return opened, err
}

// read notes acknowledgements until the pipe ends. A last line without its end
// is one that the kill cut short.
func (h *harness) read(out io.Reader) (opened bool, err error) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return opened, nil
		}
		var worker int32
		var seq, moved int64
		switch {
		case line == "open\n":
			opened = true
		case strings.HasPrefix(line, "ack "):
			if _, err := fmt.Sscanf(line, "ack %d %d", &worker, &seq); err != nil {
				return opened, err
			}
			h.acked[worker] = max(h.acked[worker], seq)
			h.total++
		case strings.HasPrefix(line, "moved "):
			if _, err := fmt.Sscanf(line, "moved %d", &moved); err != nil {
				return opened, err
			}
			h.moved += moved
		default:
			return opened, fmt.Errorf("child: %s", strings.TrimSpace(line))
		}
	}
}

func (h *harness) check() error {
	ctx := context.Background()
	db, err := rekindle.Open(ctx, h.dir, options(h.strategy, h.streams))
	if err != nil {
		return err
	}
	w, err := Open(ctx, db)
	if err != nil {
		return err
	}
	if err := w.Check(ctx, h.acked); err != nil {
		return err
	}
	if h.rng.IntN(3) == 0 { // leave a clean end now and then
		return db.Close(ctx)
	}
	return h.checkReadOnlyAfter(ctx, db)
}

// checkReadOnlyAfter closes without a last checkpoint and looks at the
// directory read-only.
func (h *harness) checkReadOnlyAfter(ctx context.Context, db *rekindle.DB) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	db.Close(ended) // reports that the checkpoint did not happen
	o := options(h.strategy, h.streams)
	o.ReadOnly = true
	reader, err := rekindle.Open(ctx, h.dir, o)
	if err != nil {
		return err
	}
	defer reader.Close(ctx)
	w, err := Open(ctx, reader)
	if err != nil {
		return err
	}
	return w.Check(ctx, h.acked)
}
