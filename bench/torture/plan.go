package torture

import (
	"math/rand/v2"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// terminalTransactions is how many transactions of TPC-C the clients of a life run
// together. Then they rest. It is there for the checks, as well.
const terminalTransactions = 800

// Database is what stays the same while a database lives.
type Database struct {
	Dir          string     `json:"dir"`
	Workload     string     `json:"workload"`
	Strategy     string     `json:"strategy"` // "" = whichever it has
	Streams      int        `json:"streams"`
	SegmentBytes int64      `json:"segmentBytes"`
	Clients      int        `json:"clients"`
	Scale        tpcc.Scale `json:"scale"` // of TPC-C
	Seed         uint64     `json:"seed"`
}

// database draws the n-th database, from 0.
func (c *Config) database(n int, dir string) Database {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(n)<<32))
	d := Database{
		Dir:          dir,
		Workload:     c.Workloads[n%len(c.Workloads)],
		Strategy:     c.Strategies[n/len(c.Workloads)%len(c.Strategies)],
		Streams:      c.Streams,
		SegmentBytes: pick[int64](rng, 64<<10, 64<<10, 128<<10, 1<<20),
		Clients:      pick(rng, 1, 4, 8, 8),
		Scale:        tpcc.Tiny(2),
		Seed:         rng.Uint64(),
	}
	if streams := pick(rng, 1, 1, 2, 3, 4); d.Streams == 0 {
		d.Streams = streams
	}
	return d
}

func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

// Options are those that may change from one life of a database to the next.
type Options struct {
	CheckpointBytes int64               `json:"checkpointBytes"`
	MemoryBudget    int64               `json:"memoryBudget"`
	Durability      rekindle.Durability `json:"durability"`
	VerifyOnOpen    bool                `json:"verifyOnOpen"`
}

func (c *Config) options(rng *rand.Rand) Options {
	o := Options{
		CheckpointBytes: pick[int64](rng, -1, 64<<10, 100<<10, 400<<10),
		MemoryBudget:    pick[int64](rng, -1, -1, 256<<10, 1<<20),
		Durability: pick(rng, rekindle.Sync, rekindle.Sync, rekindle.Sync, rekindle.Sync,
			rekindle.None, rekindle.Interval(5*time.Millisecond)),
		VerifyOnOpen: rng.IntN(4) == 0,
	}
	if c.Durability != nil {
		o.Durability = *c.Durability
	}
	return o
}

func (o *Options) engine(d *Database) *rekindle.Options {
	return &rekindle.Options{
		IndexStrategy:   d.Strategy,
		LogStreams:      d.Streams,
		SegmentBytes:    d.SegmentBytes,
		CheckpointBytes: o.CheckpointBytes,
		MemoryBudget:    o.MemoryBudget,
		Durability:      o.Durability,
		VerifyOnOpen:    o.VerifyOnOpen,
	}
}

// Life is what a child does until it is killed.
type Life struct {
	Database Database `json:"database"`
	Options  Options  `json:"options"`
	Seed     uint64   `json:"seed"`

	Patience time.Duration `json:"patience"` // after this time the child has hung

	// Convert is an index strategy to convert the database to, instead of all below.
	Convert string `json:"convert,omitempty"`

	// Maintain is what one goroutine does beside the clients, again and again.
	Maintain []Phase `json:"maintain,omitempty"`
	// Transactions is how many each client runs; 0 = as many as it can.
	Transactions int `json:"transactions,omitempty"`

	// CloseAfter is when the database is closed; 0 = never. Busy: while the clients
	// work; else they stop before.
	CloseAfter time.Duration `json:"closeAfter,omitempty"`
	Busy       bool          `json:"busy,omitempty"`
}

// aim says when to kill: when the phase is entered for the nth time, and then a
// fraction of the time that it usually takes later.
type aim struct {
	phase    Phase
	nth      int
	fraction float64
}

// round is the plan of one round.
type round struct {
	early  []aim // at the opening of lives before the one that matters
	lives  []Life
	last   aim
	life   Life
	check  Ending
	after  Options // of the check
	verify bool    // by the check
}

// inDatabase says the how-manieth round of its database, from 0, the n-th of a run
// is, from 1.
func (c *Config) inDatabase(n int) int { return (n - 1) % c.PerDatabase }

// round draws the n-th round of a run, from 1.
func (c *Config) round(n int, d Database) round {
	rng := rand.New(rand.NewPCG(c.Seed, uint64(n)))
	var r round
	for rng.IntN(2) == 0 && len(r.early) < 6 {
		r.early = append(r.early, aim{Opening, 1, 1.2 * rng.Float64()})
		r.lives = append(r.lives, c.life(rng, d))
	}
	r.last = aim{
		phase:    pick(rng, Opening, Running, Running, Checkpointing, Checkpointing, Compacting, Compacting, Closing, Closing),
		nth:      1 + rng.IntN(3),
		fraction: 1.1 * rng.Float64(),
	}
	r.life = c.life(rng, d)
	closeAfter := time.Duration(rng.Int64N(int64(usualLife)))
	switch r.last.phase {
	case Checkpointing, Compacting:
		r.life.Maintain = append(r.life.Maintain, r.last.phase)
	case Closing:
		r.life.CloseAfter = max(1, closeAfter)
	}
	if r.last.phase == Opening || r.last.phase == Running || r.last.phase == Closing {
		r.last.nth = 1 // which do not come again
	}
	if convert := pick(rng, c.Strategies...); rng.IntN(8) == 0 && c.inDatabase(n) > 0 {
		r.last = aim{Converting, 1, r.last.fraction}
		r.life.Convert = convert
	}
	r.check = pick(rng, Close, Abandon, Drop)
	// A torn record at the end of the manifest passes for damage.
	r.verify = rng.IntN(3) == 0
	r.after = c.options(rng)
	return r
}

func (c *Config) life(rng *rand.Rand, d Database) Life {
	l := Life{
		Database: d,
		Options:  c.options(rng),
		Seed:     rng.Uint64(),
		Patience: c.patience,
		Maintain: pick(rng, nil, []Phase{Checkpointing}, []Phase{Compacting}, []Phase{Checkpointing, Compacting}, []Phase{Verifying, Checkpointing}),
		Busy:     rng.IntN(8) == 0,
	}
	if d.Workload == TPCC {
		l.Transactions = terminalTransactions / d.Clients
	}
	return l
}
