package overhead

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/dataset"
	"github.com/rekindledb/rekindle/bench/latency"
)

// client runs transactions until the slice ends. What ends later does not
// count.
func (s *slicer) client(ctx context.Context, number int) error {
	t := newTransaction(s.table.Session(), s.rows, number, s.config.Load.Reads)
	var idle, hit latency.Histogram
	began := time.Now()
	for !s.stopped() {
		before := s.running.Load()
		if err := t.run(ctx, s.db); err != nil {
			return err
		}
		ended := time.Now()
		window := int(ended.Sub(s.begin) / Window)
		if window >= len(s.windows) {
			break
		}
		s.windows[window].Add(1)
		if before || s.running.Load() {
			hit.Record(ended.Sub(began))
		} else {
			idle.Record(ended.Sub(began))
		}
		began = ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.Merge(&idle)
	s.hit.Merge(&hit)
	return nil
}

// transaction is drawn and run, again and again, for one client.
type transaction struct {
	client  int
	session dataset.Session
	rows    *population
	rng     *rand.Rand

	reads          []uint64 // keys
	replace        bool
	insert, remove uint64 // if replace
	update         uint64 // if not
	version        uint64
	gone           bool // a row drawn at random was not there any more
}

func newTransaction(s dataset.Session, rows *population, client, reads int) *transaction {
	return &transaction{
		client:  client,
		session: s,
		rows:    rows,
		rng:     rand.New(rand.NewPCG(rand.Uint64(), uint64(client))),
		reads:   make([]uint64, reads),
	}
}

// replaceEvery is how many transactions there are for one that replaces a row.
const replaceEvery = 5

// draw chooses what the next transaction does.
func (t *transaction) draw() {
	t.drawRandom()
	if t.replace = t.rng.IntN(replaceEvery) == 0; t.replace {
		t.insert, t.remove = t.rows.replace(t.client)
	}
}

func (t *transaction) drawRandom() {
	for i := range t.reads {
		t.reads[i] = t.rows.random(t.rng)
	}
	t.update, t.version = t.rows.random(t.rng), t.rng.Uint64()
}

// maxDraws bounds how often random rows are gone before they are reached.
const maxDraws = 100

// run commits a transaction. If a random row has gone meanwhile it takes
// others.
func (t *transaction) run(ctx context.Context, db *rekindle.DB) error {
	t.draw()
	for draws := 1; ; draws++ {
		err := db.Update(ctx, t.apply)
		if err == nil || !t.gone || draws == maxDraws {
			return err
		}
		t.drawRandom()
	}
}

func (t *transaction) apply(tx *rekindle.Tx) error {
	t.gone = false
	for _, key := range t.reads {
		if err := t.session.Get(tx, key); err != nil {
			return t.notice(err)
		}
	}
	if !t.replace {
		return t.notice(t.session.Update(tx, t.update, t.version))
	}
	if err := t.session.Insert(tx, t.insert); err != nil {
		return err
	}
	return t.session.Delete(tx, t.remove)
}

// notice returns the error of using a random row.
func (t *transaction) notice(err error) error {
	t.gone = errors.Is(err, rekindle.ErrNotFound)
	return err
}
