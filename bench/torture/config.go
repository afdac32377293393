package torture

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rekindledb/rekindle"
)

// Config says what a run does.
type Config struct {
	Dir  string // keeps the ledger and what is known of the database
	Data string // keeps the databases, one after the other; "" = Dir

	Seed   uint64
	Rounds int           // 0 = as many as there is time for
	Time   time.Duration // to begin rounds in; 0 = as long as the rounds take

	PerDatabase int // rounds before a new database is made; 0 = defaultPerDatabase

	Workloads  []string             // in turn, from Workloads
	Strategies []string             // index strategies, in turn
	Streams    int                  // log streams; 0 = from the seed
	Durability *rekindle.Durability // nil = from the seed

	// Executable with Args runs Serve with the last two arguments and its standard
	// output.
	Executable string
	Args       []string
	Stderr     io.Writer // of the children

	// PowerCut is called after each process that worked on the database has gone,
	// and may take from the medium what was not synced. nil = none.
	PowerCut func(rng *rand.Rand) error

	Progress func(phase string, done, total int64) // nil = none

	patience time.Duration // until a child has hung; 0 = defaultPatience
	grace    time.Duration // for a child to say where it hangs; 0 = defaultGrace
}

const (
	// defaultPerDatabase is that low because checks take longer the more has been
	// acknowledged.
	defaultPerDatabase = 12
	// defaultPatience is long beyond what any child takes on these small databases.
	defaultPatience = 2 * time.Minute
	defaultGrace    = 10 * time.Second
)

// maxStreams is how many log streams a database can have.
const maxStreams = 63

// ledgerFile is the name of the ledger in Config.Dir.
const ledgerFile = "ledger.json"

// Names of the workloads.
const (
	Counters = "counters"
	TPCC     = "tpcc"
)

// Workloads returns the names of the workloads.
func Workloads() []string { return []string{Counters, TPCC} }

// Validate checks the ranges.
func (c *Config) Validate() error {
	var errs []error
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	expect(c.Rounds >= 0, "rounds must not be negative, but %d", c.Rounds)
	expect(c.PerDatabase >= 0, "rounds of a database must not be negative, but %d", c.PerDatabase)
	expect(c.Time >= 0, "the time must not be negative, but %v", c.Time)
	expect(c.Rounds > 0 || c.Time > 0, "neither rounds nor time are bounded")
	expect(c.Streams >= 0 && c.Streams <= maxStreams, "streams must be 0 to %d, but %d", maxStreams, c.Streams)
	expect(len(c.Strategies) > 0, "no index strategy")
	expect(len(c.Workloads) > 0, "no workload")
	for _, w := range c.Workloads {
		expect(slices.Contains(Workloads(), w), "workload %q is unknown: want %s or %s", w, Counters, TPCC)
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	c.Data = cmp.Or(c.Data, c.Dir)
	c.PerDatabase = cmp.Or(c.PerDatabase, defaultPerDatabase)
	c.patience = cmp.Or(c.patience, defaultPatience)
	c.grace = cmp.Or(c.grace, defaultGrace)
}

func (c *Config) progress(done int) {
	if c.Progress != nil {
		c.Progress("killing round", int64(done), int64(c.Rounds))
	}
}
