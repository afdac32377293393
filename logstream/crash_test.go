package logstream

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var crashModes = []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random, vfs.Random, vfs.Kill}

// crashState is what a crash left, and what had been written and promised.
type crashState struct {
	op   int
	mode vfs.CrashMode
	mem  *vfs.Mem
	h    *history
}

// collectCrashes lets every step-th mutating operation crash in all modes. The
// history is copied after the clone but the promise is read before it.
func collectCrashes(mem *vfs.Mem, h *history, seed uint64, step int) func() []crashState {
	if invariants.Enabled && step > 1 {
		step *= 3 // the race detector is slow
	}
	var mu sync.Mutex
	var states []crashState
	rng := rand.New(rand.NewPCG(seed, 7))
	mem.OnOp(func(n int, _ vfs.Op) error {
		if n%step != 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		promised := h.copy().promised
		for _, mode := range crashModes {
			states = append(states, crashState{op: n, mode: mode, mem: mem.CrashClone(rng, mode)})
		}
		later := h.copy()
		for i := len(states) - len(crashModes); i < len(states); i++ {
			states[i].h = later.copy()
			states[i].h.promised = promised
		}
		return nil
	})
	return func() []crashState {
		mem.OnOp(nil)
		return states
	}
}

// workload commits jobs from several goroutines, some without waiting, some in
// parts, some given up.
func workload(t *testing.T, l *Log, h *history, seed uint64, writers, jobs int) {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range jobs {
				if rng.IntN(15) == 0 {
					require.NoError(t, h.abandon(l, h.newJob(), uint32(w)))
				}
				require.NoError(t, h.run(l, h.newJob(), rng.Uint32(), rng.IntN(3) != 0))
			}
		})
	}
	wg.Wait()
}

func TestCrashAtEveryOperation(t *testing.T) {
	for _, c := range []struct{ streams, writers, jobs, step int }{
		{1, 1, 50, 1}, {1, 4, 25, 3}, {3, 1, 30, 2}, {3, 4, 25, 5},
	} {
		t.Run(fmt.Sprintf("streams=%d/writers=%d", c.streams, c.writers), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			mem, h := newMem(t), newHistory()
			states := collectCrashes(mem, h, seed, c.step)
			l := openLog(t, testOptions(mem, c.streams), Start{})
			workload(t, l, h, seed, c.writers, c.jobs)
			closeLog(t, l)
			for _, s := range states() {
				s.recoverTwice(t, c.streams)
			}
			require.Zero(t, mem.Handles())
		})
	}
}

// recoverTwice recovers, goes on, loses everything that is not durable, and
// recovers again: nothing that the first recovery delivered is lost.
func (s *crashState) recoverTwice(t *testing.T, streams int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("crash before operation %d, mode %v", s.op, s.mode)
		}
	}()
	l := s.h.recover(t, testOptions(s.mem, streams))
	s.h.promise(l.Durable())
	if s.op%2 == 0 {
		require.NoError(t, s.h.run(l, s.h.newJob(), 1, true))
		require.NoError(t, s.h.run(l, s.h.newJob(), 2, true))
	}
	again := s.mem.CrashClone(nil, vfs.Strict)
	closeLog(t, l)
	s.h.check(t, testOptions(again, streams))
}

func TestRestartChains(t *testing.T) {
	for _, streams := range []int{1, 2} {
		t.Run(fmt.Sprintf("streams=%d", streams), func(t *testing.T) {
			t.Parallel()
			for range 10 {
				seed := rand.Uint64()
				restartChain(t, streams, seed)
			}
		})
	}
}

// restartChain crashes ten times, each time at some operation after a recovery,
// which may be one of the first commit's own.
func restartChain(t *testing.T, streams int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	mem, h := newMem(t), newHistory()
	for restart := range 10 {
		l := h.recover(t, testOptions(mem, streams))
		h.promise(l.Durable())
		states := collectCrashes(mem, h, rng.Uint64(), 1)
		workload(t, l, h, rng.Uint64(), 2, rng.IntN(12))
		closeLog(t, l)
		all := states()
		if len(all) == 0 {
			continue
		}
		s := all[rng.IntN(len(all))]
		mem, h = s.mem, s.h
		if t.Failed() {
			t.Fatalf("seed %d, restart %d", seed, restart)
		}
	}
	h.check(t, testOptions(mem, streams))
}
