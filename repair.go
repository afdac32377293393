package rekindle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/repair"
	"github.com/rekindledb/rekindle/txn"
)

// repairs builds damaged indexes anew, one after the other.
type repairs struct {
	due  chan damagedIndex
	done atomic.Int64
}

type damagedIndex struct {
	table  *txn.Table
	number int
	index  *repair.Index
}

const (
	repairQueue = 1 << 12 // more would wait for the next Open
	repairRetry = time.Second
)

// repairable makes an index of files one that can be replaced while it is in use.
func (db *DB) repairable(t *txn.Table, number int, ix index.Index) index.Index {
	if !db.state.Strategy.Persistent() {
		return ix
	}
	spec := db.catalog.spec(t)(number)
	prefix := fmt.Sprintf("index-%d-%d.", t.ID, number)
	return repair.New(repair.Config{
		Name:   spec.Name,
		Create: func() (index.Index, error) { return db.state.Strategy.Create(spec) },
		Mine:   func(path string) bool { return strings.HasPrefix(filepath.Base(path), prefix) },
		Found: func(x *repair.Index, damage error) {
			db.opts.Logger.Warn("index is damaged and will be rebuilt", "index", spec.Name, "error", damage)
			select {
			case db.repairs.due <- damagedIndex{t, number, x}:
			default:
			}
		},
	}, ix)
}

// repairWhenDue builds anew what is found damaged.
func (db *DB) repairWhenDue(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-db.repairs.due:
			db.repair(ctx, d)
		}
	}
}

// repair builds one index and asks for a checkpoint with it. It tries again until
// it succeeds.
func (db *DB) repair(ctx context.Context, d damagedIndex) {
	start := time.Now()
	name := d.table.Schema.Indexes[d.number].Name
	for ctx.Err() == nil {
		err := db.rebuild(ctx, d)
		if err == nil {
			db.repairs.done.Add(1)
			db.opts.Logger.Info("index rebuilt", "table", d.table.Name(), "index", name, "duration", time.Since(start))
			return
		}
		db.opts.Logger.Warn("index not rebuilt", "table", d.table.Name(), "index", name, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(repairRetry):
		}
	}
}

func (db *DB) rebuild(ctx context.Context, d damagedIndex) error {
	fill := func(ix index.Index) error { return db.manager.Reindex(ctx, d.table, d.number, ix) }
	if db.checkpointer == nil {
		return d.index.Rebuild(ctx, db.epochs, fill)
	}
	err := db.checkpointer.Replace(func() error { return d.index.Rebuild(ctx, db.epochs, fill) })
	if err == nil && db.opts.CheckpointBytes > 0 {
		db.askForCheckpoint()
	}
	return err
}
