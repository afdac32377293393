package counters

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rekindledb/rekindle"
)

// Counter is the number of transactions of one worker.
type Counter struct {
	Worker int32 `rekindle:",pk"`
	Seq    int64
}

// Event is inserted by its worker's transaction Seq, gets another tag by
// transaction Seq + ageAfter and is deleted by transaction Seq + window.
type Event struct {
	Worker int32  `rekindle:",pk"`
	Seq    int64  `rekindle:",pk"`
	Tag    string `rekindle:",index"`
	Unique string `rekindle:",unique"`
	Body   []byte
}

// Keepsake is inserted by every keepEvery-th transaction of a worker and stays
// much longer than the rows beside it in the log, which is therefore compacted.
type Keepsake struct {
	Worker int32 `rekindle:",pk"`
	Seq    int64 `rekindle:",pk"`
	Body   string
}

// Shared is one row that all workers fight for: every sharedEvery-th
// transaction of each adds one.
type Shared struct {
	ID    int8 `rekindle:",pk"`
	Total int64
}

// Block is one of blockRows rows that every bulkEvery-th transaction of a
// worker rewrites together: a transaction larger than a log frame.
type Block struct {
	Worker int32 `rekindle:",pk"`
	Row    int32 `rekindle:",pk"`
	Seq    int64 `rekindle:",index"`
	Body   string
}

const (
	window      = 40
	ageAfter    = 10
	sharedEvery = 5
	bulkEvery   = 16
	blockRows   = 60
	keepEvery   = 16
	kept        = 50 // keepsakes of a worker
)

// Workload is the set of tables on an open database.
type Workload struct {
	db       *rekindle.DB
	counters *rekindle.Table[Counter]
	events   *rekindle.Table[Event]
	shared   *rekindle.Table[Shared]
	blocks   *rekindle.Table[Block]
	keeps    *rekindle.Table[Keepsake]
}

// Open makes or opens the tables.
func Open(ctx context.Context, db *rekindle.DB) (w *Workload, err error) {
	w = &Workload{db: db}
	if w.counters, err = rekindle.OpenTable[Counter](ctx, db, "counters"); err != nil {
		return nil, err
	}
	if w.events, err = rekindle.OpenTable[Event](ctx, db, "events"); err != nil {
		return nil, err
	}
	if w.shared, err = rekindle.OpenTable[Shared](ctx, db, "shared"); err != nil {
		return nil, err
	}
	if w.blocks, err = rekindle.OpenTable[Block](ctx, db, "blocks"); err != nil {
		return nil, err
	}
	w.keeps, err = rekindle.OpenTable[Keepsake](ctx, db, "keepsakes")
	return w, err
}

// Step runs the next transaction of a worker and returns its number once it is
// committed.
func (w *Workload) Step(ctx context.Context, worker int32) (seq int64, err error) {
	err = w.db.Update(ctx, func(tx *rekindle.Tx) error {
		c := Counter{Worker: worker}
		if err := w.counters.Get(tx, &c); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
			return err
		}
		c.Seq++
		seq = c.Seq
		if err := w.counters.Upsert(tx, &c); err != nil {
			return err
		}
		return w.apply(tx, worker, seq)
	})
	return seq, err
}

// apply does what transaction seq of a worker does besides counting.
func (w *Workload) apply(tx *rekindle.Tx, worker int32, seq int64) error {
	if err := w.events.Insert(tx, event(worker, seq, seq)); err != nil {
		return err
	}
	if aged := seq - ageAfter; aged > 0 {
		if err := w.events.Update(tx, event(worker, aged, seq)); err != nil {
			return err
		}
	}
	if gone := seq - window; gone > 0 {
		if err := w.events.Delete(tx, &Event{Worker: worker, Seq: gone}); err != nil {
			return err
		}
	}
	if seq%sharedEvery == 0 {
		if err := w.addShared(tx); err != nil {
			return err
		}
	}
	if seq%keepEvery == 0 {
		if err := w.keep(tx, worker, seq); err != nil {
			return err
		}
	}
	if seq%bulkEvery == 0 {
		return w.rewriteBlocks(tx, worker, seq)
	}
	return nil
}

func (w *Workload) keep(tx *rekindle.Tx, worker int32, seq int64) error {
	if err := w.keeps.Insert(tx, keepsake(worker, seq)); err != nil {
		return err
	}
	if gone := seq - kept*keepEvery; gone > 0 {
		return w.keeps.Delete(tx, &Keepsake{Worker: worker, Seq: gone})
	}
	return nil
}

func (w *Workload) addShared(tx *rekindle.Tx) error {
	s := Shared{ID: 1}
	if err := w.shared.Get(tx, &s); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
		return err
	}
	s.Total++
	return w.shared.Upsert(tx, &s)
}

func (w *Workload) rewriteBlocks(tx *rekindle.Tx, worker int32, seq int64) error {
	for row := range int32(blockRows) {
		if err := w.blocks.Upsert(tx, block(worker, row, seq)); err != nil {
			return err
		}
	}
	return nil
}

// event is what an event looks like after transaction now of its worker.
func event(worker int32, seq, now int64) *Event {
	tag := "new"
	if now >= seq+ageAfter {
		tag = "aged"
	}
	name := fmt.Sprintf("%s-%d-%d", tag, worker, seq)
	return &Event{Worker: worker, Seq: seq, Tag: tag, Unique: name, Body: []byte(strings.Repeat(name, int(seq%7)))}
}

func keepsake(worker int32, seq int64) *Keepsake {
	return &Keepsake{Worker: worker, Seq: seq, Body: strings.Repeat(fmt.Sprintf("%d of %d ", seq, worker), 40)}
}

func block(worker, row int32, seq int64) *Block {
	return &Block{Worker: worker, Row: row, Seq: seq, Body: strings.Repeat("x", 500+int(seq%100))}
}

// Check compares the whole content with what follows from the counters, and
// those with what was acknowledged: acknowledged[worker] is the largest number
// that Step has returned. Every index is compared with a scan.
func (w *Workload) Check(ctx context.Context, acknowledged map[int32]int64) error {
	if _, err := w.db.CrossCheck(ctx); err != nil {
		return err
	}
	return w.db.View(ctx, func(tx *rekindle.Tx) error {
		seqs, err := w.readCounters(tx)
		if err != nil {
			return err
		}
		for worker, acked := range acknowledged {
			if seqs[worker] < acked {
				return fmt.Errorf("worker %d: transaction %d was acknowledged, the last one there is %d", worker, acked, seqs[worker])
			}
		}
		return errors.Join(w.checkEvents(tx, seqs), w.checkShared(tx, seqs), w.checkBlocks(tx, seqs), w.checkKeepsakes(tx, seqs))
	})
}

// Counters returns the number of the last transaction of each worker.
func (w *Workload) Counters(ctx context.Context) (seqs map[int32]int64, err error) {
	err = w.db.View(ctx, func(tx *rekindle.Tx) error {
		seqs, err = w.readCounters(tx)
		return err
	})
	return seqs, err
}

func (w *Workload) readCounters(tx *rekindle.Tx) (map[int32]int64, error) {
	seqs := map[int32]int64{}
	for c, err := range w.counters.All(tx) {
		if err != nil {
			return nil, err
		}
		seqs[c.Worker] = c.Seq
	}
	return seqs, nil
}

func (w *Workload) checkEvents(tx *rekindle.Tx, seqs map[int32]int64) error {
	next := map[int32]int64{}
	for worker, seq := range seqs {
		next[worker] = max(0, seq-window) + 1
	}
	for e, err := range w.events.All(tx) {
		if err != nil {
			return err
		}
		want := event(e.Worker, next[e.Worker], seqs[e.Worker])
		if e.Seq != want.Seq || e.Tag != want.Tag || e.Unique != want.Unique || string(e.Body) != string(want.Body) {
			return fmt.Errorf("event %+v where %+v belongs, worker at %d", e, *want, seqs[e.Worker])
		}
		next[e.Worker]++
	}
	for worker, n := range next {
		if n != seqs[worker]+1 {
			return fmt.Errorf("worker %d: events end at %d, counter is %d", worker, n-1, seqs[worker])
		}
	}
	return nil
}

func (w *Workload) checkShared(tx *rekindle.Tx, seqs map[int32]int64) error {
	var want int64
	for _, seq := range seqs {
		want += seq / sharedEvery
	}
	s := Shared{ID: 1}
	if err := w.shared.Get(tx, &s); err != nil && !errors.Is(err, rekindle.ErrNotFound) {
		return err
	}
	if s.Total != want {
		return fmt.Errorf("shared total is %d, the counters make %d", s.Total, want)
	}
	return nil
}

func (w *Workload) checkBlocks(tx *rekindle.Tx, seqs map[int32]int64) error {
	rows := map[int32]int32{}
	for b, err := range w.blocks.All(tx) {
		if err != nil {
			return err
		}
		want := block(b.Worker, rows[b.Worker], seqs[b.Worker]/bulkEvery*bulkEvery)
		if b != *want {
			return fmt.Errorf("block %d/%d of transaction %d, want that of %d", b.Worker, b.Row, b.Seq, want.Seq)
		}
		rows[b.Worker]++
	}
	for worker, seq := range seqs {
		if seq >= bulkEvery && rows[worker] != blockRows {
			return fmt.Errorf("worker %d: %d blocks of %d", worker, rows[worker], blockRows)
		}
	}
	return nil
}

func (w *Workload) checkKeepsakes(tx *rekindle.Tx, seqs map[int32]int64) error {
	next := map[int32]int64{}
	for worker, seq := range seqs {
		next[worker] = max(0, seq/keepEvery-kept)*keepEvery + keepEvery
	}
	for k, err := range w.keeps.All(tx) {
		if err != nil {
			return err
		}
		if want := keepsake(k.Worker, next[k.Worker]); k != *want {
			return fmt.Errorf("keepsake %d/%d where %d belongs", k.Worker, k.Seq, want.Seq)
		}
		next[k.Worker] += keepEvery
	}
	for worker, n := range next {
		if n != seqs[worker]/keepEvery*keepEvery+keepEvery {
			return fmt.Errorf("worker %d: keepsakes end before %d, counter is %d", worker, n, seqs[worker])
		}
	}
	return nil
}
