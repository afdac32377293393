package rekindle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/recovery"
	"github.com/rekindledb/rekindle/txn"
)

// DB is an open database. It is safe for concurrent use.
//
// Its parts, from the bottom: the arena holds row versions, the log holds
// records of all commits, each table has an indirection array from row to
// either of them and an index per key.
//
//	To read:       pin an epoch; index → row → slot → version of the snapshot;
//	               check its key; copy; unpin.
//	To write:      put an uncommitted version over the newest committed one,
//	               then enter its new keys.
//	To commit:     reserve CTS and place in the log; encode; note the log
//	               addresses; stamp; publish; wait for the disk.
//	To checkpoint: apply the log since the last one to its array files; name
//	               the new files in the manifest.
//	To recover:    map the array files; set the slots of the tail's rows.
type DB struct {
	opts    Options
	dir     string
	budget  int64 // of memory in bytes, 0 for none
	files   *vfs.Meter
	state   *recovery.State
	arena   *arena.Arena
	epochs  *epoch.Domain
	log     *logstream.Log
	manager *txn.Manager
	catalog catalog
	process processMemory

	collector    *gc.Collector
	freezer      *gc.Freezer            // nil without a memory budget
	checkpointer *recovery.Checkpointer // nil when read-only
	growth       growth
	compaction   chan struct{} // a token: there was a checkpoint, the log may want to be compacted
	repairs      repairs

	background sync.WaitGroup
	life       context.Context // ends when Close takes things down
	stop       context.CancelFunc
	recovered  chan struct{} // closed when Open has done what it needs memory for
	closing    chan struct{} // holds a token while there is a Close under way
	calls      sync.RWMutex  // read-locked by calls outside of transactions, locked by Close once closed is set
	closed     atomic.Bool
}

// enter begins a call outside of a transaction, which Close waits for; leave
// ends it. It does not wait for Close: who calls may be what Close waits for, such
// as a call within a call, from a Logger or a Progress function.
func (db *DB) enter() error {
	if !db.calls.TryRLock() {
		return fault.ErrClosed
	}
	if db.closed.Load() {
		db.calls.RUnlock()
		return fault.ErrClosed
	}
	return nil
}

func (db *DB) leave() { db.calls.RUnlock() }

// Open opens the database in a directory, recovering it if it was not closed,
// or creates one there. A relative name is that of the directory which it means now,
// whatever becomes of the working directory. Open can take as long as the log's tail
// is long, and with the rebuild strategy as long as it takes to read all rows; ctx
// ends it early.
// Nil options mean defaults.
//
// Errors: ErrLocked if the database is open already; ErrFormat, ErrCorrupt,
// ErrForeignFile or ErrMissingFile for files that cannot be used;
// ErrInvalidOptions. A failed Open changes nothing in the directory.
func Open(ctx context.Context, dir string, opts *Options) (_ *DB, err error) {
	db := &DB{closing: make(chan struct{}, 1), recovered: make(chan struct{})}
	if db.opts, db.dir, err = opts.in(dir); err != nil {
		return nil, err
	}
	if err := db.opts.validate(); err != nil {
		return nil, err
	}
	db.catalog.db = db
	db.repairs.due = make(chan damagedIndex, repairQueue)
	opened := false
	defer func() {
		if !opened { // also when Progress has panicked
			err = errors.Join(err, db.release(ctx))
		}
	}()
	if err := db.open(ctx); err != nil {
		return nil, err
	}
	db.start()
	opened = true
	return db, nil
}

func (db *DB) open(ctx context.Context) error {
	memoryGrows := make(chan struct{}, 1)
	db.arena = arena.New(arena.Config{
		Limit: db.opts.MemoryLimit,
		OnMark: func() {
			select {
			case memoryGrows <- struct{}{}:
			default: // the freezer is awake
			}
		},
	})
	db.epochs = epoch.NewDomain(db.arena)
	db.files = vfs.NewMeter(db.opts.fs, db.dir)
	db.opts.fs = db.files
	budget := make(chan int64, 1)
	go func() { budget <- db.opts.budget() }() // beside recovery, which needs none
	var err error
	db.state, err = recovery.Open(ctx, recovery.Config{
		FS:       db.files,
		Dir:      db.dir,
		ReadOnly: db.opts.ReadOnly,
		Verify:   db.opts.VerifyOnOpen,
		New:      db.newHeader(),
		Arena:    db.arena,
		Epochs:   db.epochs,
		Logger:   db.opts.Logger,
		Progress: db.progress,
		Strategy: strategyNamed,
	})
	db.budget = <-budget
	if err != nil {
		return err
	}
	if err := db.checkHeader(); err != nil {
		return err
	}
	if err := db.openLog(memoryGrows); err != nil {
		return err
	}
	if err := db.catalog.load(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	db.arena.SetReserve(db.opts.reserve()) // recovery may take all
	return db.openCheckpointer()
}

// shareBudget gives the arena what mapped files leave of the memory budget.
func (db *DB) shareBudget() {
	if db.freezer == nil {
		return
	}
	db.arena.SetMark(db.freezer.Mark())
	db.freezer.Changed()
}

func (db *DB) progress(phase string, done, total int64) {
	if db.opts.Progress != nil {
		db.opts.Progress(Progress{phase, done, total})
	}
}

// newHeader says what a new database is made with.
func (db *DB) newHeader() recovery.Header {
	h := recovery.Header{LogStreams: db.opts.LogStreams, SegmentBytes: db.opts.SegmentBytes, Strategy: db.opts.IndexStrategy}
	if h.LogStreams == 0 {
		h.LogStreams = 1
	}
	if h.SegmentBytes == 0 {
		h.SegmentBytes = logstream.DefaultSegmentBytes
	}
	if h.Strategy == "" {
		h.Strategy = strategies()[0].Name()
	}
	return h
}

// checkHeader compares the options with what the database was made with.
func (db *DB) checkHeader() error {
	h, o := &db.state.Header, &db.opts
	switch {
	case o.LogStreams != 0 && o.LogStreams != h.LogStreams:
		return invalidOption("LogStreams is %d, the database has %d", o.LogStreams, h.LogStreams)
	case o.SegmentBytes != 0 && o.SegmentBytes != h.SegmentBytes:
		return invalidOption("SegmentBytes is %d, the database has %d", o.SegmentBytes, h.SegmentBytes)
	case o.IndexStrategy != "" && o.IndexStrategy != h.Strategy:
		return invalidOption("IndexStrategy is %q, the database has %q", o.IndexStrategy, h.Strategy)
	}
	return nil
}

func (db *DB) openLog(memoryGrows chan struct{}) error {
	o := db.state.LogOptions()
	o.Durability = db.opts.Durability.log()
	var err error
	if db.log, err = logstream.Open(o, db.state.Tail.Start); err != nil {
		return err
	}
	db.manager = txn.NewManager(txn.Config{
		Arena:      db.arena,
		Epochs:     db.epochs,
		Log:        db.log,
		Durability: o.Durability,
		MaxRow:     int(min(maxRowBytes, db.state.Header.SegmentBytes/8)),
		MaxPart:    min(maxRowBytes, db.log.MaxFrame()/2),
		MaxRecord:  db.log.MaxFrame() / 2,
		ReadOnly:   db.opts.ReadOnly,
		Find:       db.catalog.byID,
		Trace:      db.opts.TraceTransactions,
		Assist:     db.assist,
		Budget:     db.budget,
		Relieve:    db.relieve,
		ColdReads:  func() { db.freezer.Wake() },
	})
	db.collector = gc.New(db.manager, db.opts.Logger, db.makeRoom)
	if db.budget > 0 {
		db.freezer = gc.NewFreezer(db.collector, db.budget, db.mappedMemory, db.catalog.tables, db.relieveIndexes, memoryGrows)
	}
	return nil
}

func (db *DB) openCheckpointer() error {
	if db.opts.ReadOnly {
		return nil
	}
	if err := db.state.Suspects(db.collector.Add); err != nil {
		return err
	}
	db.checkpointer = recovery.NewCheckpointer(db.state, recovery.Engine{
		Log:       db.log,
		Manager:   db.manager,
		Collector: db.collector,
		Tables:    db.catalog.tables,
		Short:     db.indexesShrink,
		Eager:     db.opts.eager,
	})
	return nil
}

// RecoveryReport says what Open found and did.
func (db *DB) RecoveryReport() RecoveryReport { return db.state.Report }

type (
	// RecoveryReport describes an Open.
	//
	//	Created          there was no database
	//	Strategy         the index strategy that it was made with or converted to
	//	Checkpoint, TSc  number of the checkpoint used, 0 for none, and the commit
	//	                 that it ends with
	//	GroupsReplayed, RecordsReplayed, EntriesReplayed, TailBytes
	//	                 transactions, their records, index entries, and bytes of the
	//	                 log behind it
	//	BytesDropped, DropReason
	//	                 what lay behind the end of the log, never acknowledged, and
	//	                 why it does not count
	//	Fallbacks        what was damaged, and what serves instead
	//	TablesOpened, IndexesMapped
	//	                 tables, and indexes opened from the checkpoint
	//	IndexesRebuilt, RowsScanned
	//	                 indexes made anew, and the rows read for them
	//	Phases, Total    where the time went
	RecoveryReport = recovery.Report
	// Phase is the Name of a part of an Open and its Duration.
	Phase = recovery.Phase
)

// closeGrace is how long Close waits for open transactions if its context does
// not end earlier.
const closeGrace = time.Second

// settleGrace is how long it then works off what they have left behind.
const settleGrace = time.Second

// Close waits a second for open transactions, ends those that remain, writes a
// last checkpoint and releases everything. It returns ErrOpenTransactions if it
// had to end some, with an OpenTransactionsError that says which; ErrReadOnly if
// the log had failed. If ctx ends it goes on without the checkpoint: the next Open
// then replays the tail. Closing again returns ErrClosed, once a Close that is
// under way has ended or, with the error of ctx, when that ends.
func (db *DB) Close(ctx context.Context) error {
	if db.closing == nil { // never opened
		return fault.ErrClosed
	}
	if err := db.beginClosing(ctx); err != nil {
		return err
	}
	defer func() { <-db.closing }()
	if db.closed.Load() {
		return fault.ErrClosed
	}
	db.awaitTransactions(ctx)
	db.closed.Store(true)
	db.stop()
	db.calls.Lock()
	//lint:ignore SA2001 those under way have ended, and no other will begin
	db.calls.Unlock()
	db.background.Wait()
	var errs []error
	if open := db.manager.Close(); len(open) > 0 {
		errs = append(errs, &fault.OpenTransactions{Transactions: open})
	}
	errs = append(errs, db.lastCheckpoint(ctx), db.release(ctx))
	return errors.Join(errs...)
}

// beginClosing waits until no other Close is under way, or ctx ends.
func (db *DB) beginClosing(ctx context.Context) error {
	select {
	case db.closing <- struct{}{}:
		return nil
	default: // a Close that is the only one goes on when ctx has ended
	}
	select {
	case db.closing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastCheckpoint leaves no tail to replay, if the log is sound: what no commit
// has waited for belongs to it too.
func (db *DB) lastCheckpoint(ctx context.Context) error {
	if db.checkpointer == nil {
		return nil
	}
	if err := db.log.Failed(); err != nil {
		return fmt.Errorf("%w: its log failed: %w", fault.ErrReadOnly, err)
	}
	err := db.log.Flush(ctx)
	if err == nil {
		db.settle(ctx)
		_, err = db.checkpointer.Run(ctx)
	}
	if err != nil {
		return fmt.Errorf("last checkpoint: %w", err)
	}
	return nil
}

// settle works off the garbage of the last transactions, unless it is much: a next
// life that writes at once can use the identities of deleted rows only if it has no
// suspects to look at first.
func (db *DB) settle(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, settleGrace)
	defer cancel()
	db.collector.Settle(short)
}

func (db *DB) awaitTransactions(ctx context.Context) {
	deadline := time.Now().Add(closeGrace)
	for db.manager.Open() > 0 && ctx.Err() == nil && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // polls: nothing signals the end of the last transaction
	}
}

// release gives back what open has taken, as far as it got.
func (db *DB) release(ctx context.Context) error {
	var errs []error
	if db.log != nil {
		errs = append(errs, db.log.Close(ctx))
	}
	if db.checkpointer != nil {
		errs = append(errs, db.checkpointer.Close())
	}
	errs = append(errs, db.catalog.close())
	if db.state != nil {
		errs = append(errs, db.state.CloseArrays())
	}
	if db.epochs != nil {
		db.epochs.Close()
	}
	if db.arena != nil {
		errs = append(errs, db.arena.Close())
	}
	if db.state != nil {
		errs = append(errs, db.state.Close())
	}
	return errors.Join(errs...)
}
