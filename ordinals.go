package rekindle

import (
	"context"
	"sync"

	"github.com/rekindledb/rekindle/txn"
)

const (
	// recycledOrdinals bounds how many free ordinals of a table are looked up
	// after an Open without need, because they take 8 bytes each.
	recycledOrdinals = 1 << 20
	// ordinalsAtOnce is how many are looked up in one go.
	ordinalsAtOnce = 256
)

// ordinalFinder looks up the ordinals of a table that recovery found free. It
// walks the array once, and pages that are written in this life before it has come
// to them are left to a later Open, but for those that replay has written too. So it
// runs in the background early, and allocators ask it before they take fresh ordinals.
type ordinalFinder struct {
	db    *DB
	table *txn.Table

	mu   sync.Mutex
	next uint64 // where to go on
	done bool
}

// ordinalFinders returns one for each table. Tables whose indexes were rebuilt
// have had theirs found on the way.
func (db *DB) ordinalFinders() []*ordinalFinder {
	if !db.state.Strategy.Persistent() {
		return nil
	}
	var finders []*ordinalFinder
	for _, t := range db.catalog.tables() {
		finders = append(finders, &ordinalFinder{db: db, table: t, next: 1})
	}
	return finders
}

// offer lets the allocators use the finders. That entries may name a free ordinal
// which are suspects still is no matter: with its new row the ordinal is like
// that of a row that was updated, whose old key is a suspect. (Garbage of this life
// is different: it has pieces that free the ordinal, which must come last.)
func offer(finders []*ordinalFinder) {
	for _, f := range finders {
		f.table.IDs.SetSource(func() bool { return f.find() > 0 })
	}
}

// find frees some ordinals and returns how many, 0 if there are no more.
func (f *ordinalFinder) find() (found int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for found == 0 && !f.done {
		next, err := f.table.Rows.FreeOrdinals(f.next, ordinalsAtOnce, func(ordinal uint64) {
			f.table.IDs.Free(ordinal)
			found++
		})
		if err != nil {
			f.db.opts.Logger.Warn("free rows not found", "table", f.table.Name(), "error", err)
		}
		f.done = err != nil || next == f.next
		f.next = next
	}
	return found
}

// findMany frees ordinals until there are enough of them.
func (f *ordinalFinder) findMany(ctx context.Context) {
	for total := 0; total < recycledOrdinals && ctx.Err() == nil; {
		found := f.find()
		if found == 0 {
			return
		}
		total += found
	}
}
