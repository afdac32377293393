package demo

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/rekindledb/rekindle/bench/tpcc"
)

// CheckpointBytes is a size of Config.CheckpointBytes that gives a few
// checkpoints a round, so that kills also hit running ones.
const CheckpointBytes = 16 << 20

// Config says what a demonstration does.
type Config struct {
	Dir             string // of the database: absent or empty
	Strategy        string // index strategy; "" = the engine's default
	CheckpointBytes int64  // of the child
	Scale           tpcc.Scale
	Rounds          int           // kill and reopen
	Duration        time.Duration // the longest life of a child, from its first acknowledgement
	Seed            uint64        // of the data, the transactions and the moments of the kills
	Terminals       int

	// Executable with Args runs RunChild with the configuration in the last
	// argument and its standard output as the pipe.
	Executable string
	Args       []string
	Stderr     io.Writer // of the children

	Progress func(phase string, done, total int64) // nil = none
}

// Validate checks the ranges.
func (c *Config) Validate() error {
	var errs []error
	if c.Rounds < 1 {
		errs = append(errs, fmt.Errorf("rounds must be at least 1, not %d", c.Rounds))
	}
	if c.Duration <= 0 {
		errs = append(errs, fmt.Errorf("the duration of a round must be positive, not %v", c.Duration))
	}
	if c.Terminals < 1 {
		errs = append(errs, fmt.Errorf("terminals must be at least 1, not %d", c.Terminals))
	}
	return errors.Join(append(errs, c.Scale.Validate())...)
}

// life is how long the child of a round lives: at random between a quarter of
// the duration and all of it.
func (c *Config) life(round int) time.Duration {
	r := rand.New(rand.NewPCG(c.Seed, uint64(round)))
	return c.Duration/4 + time.Duration(r.Int64N(int64(c.Duration-c.Duration/4)+1))
}

func (c *Config) child(round int) ChildConfig {
	load := tpcc.LoadConstants(c.Seed)
	return ChildConfig{
		Dir:             c.Dir,
		Strategy:        c.Strategy,
		CheckpointBytes: c.CheckpointBytes,
		Scale:           c.Scale,
		Constants:       tpcc.RunConstants(c.Seed, load),
		Seed:            c.Seed + uint64(round),
		Terminals:       c.Terminals,
	}
}

func (c *Config) progress(phase string, done, total int64) {
	if c.Progress != nil {
		c.Progress(phase, done, total)
	}
}
