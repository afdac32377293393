package rekindle_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/internal/faulttest"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

var faultStride = flag.Int("fault.stride", 701, "fail every n-th operation of each procedure in TestFaultMatrix; 1 takes many minutes")

const faultWorkers = 3

// faultLife is a life of a database on a disk that fails.
type faultLife struct {
	ctx     context.Context
	dir     string
	disk    *faulttest.Disk
	witness *faulttest.Witness
	o       rekindle.Options
	db      *rekindle.DB // nil while it is not open
	w       *counters.Workload

	mu     sync.Mutex
	harmed bool          // files of indexes are damaged, as files are that no fault has touched
	last   vfs.CrashMode // how the life ends
	acked  map[int32]int64
	cuts   []powerCut // disks to be looked at in the end
	wrong  []error    // errors that no fault explains
}

// note takes the error of a call that met faults. A fault has to be its cause, or
// the harm that was there before.
func (l *faultLife) note(what string, err error) error {
	if err != nil && !errors.Is(err, errorfs.ErrInjected) && !l.isHarm(err) {
		l.mu.Lock()
		l.wrong = append(l.wrong, fmt.Errorf("%s: not an injected error: %w", what, err))
		l.mu.Unlock()
	}
	return l.witness.Note(err)
}

func (l *faultLife) isHarm(err error) bool {
	return l.harmed && (errors.Is(err, rekindle.ErrIndexDamaged) || errors.Is(err, rekindle.ErrCorrupt))
}

// repaired waits until all indexes serve, if any was harmed.
func (l *faultLife) repaired() error {
	for l.harmed {
		err := l.w.Check(l.ctx, l.acked)
		if !l.isHarm(err) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (l *faultLife) options() *rekindle.Options {
	o := l.o
	o.Logger = l.witness.Logger()
	return o.OnFS(l.disk)
}

// open opens the database and its tables and reports whether both worked.
func (l *faultLife) open() bool {
	db, err := rekindle.Open(l.ctx, l.dir, l.options())
	if l.note("open", err) != nil {
		return false
	}
	l.db = db
	for _, text := range db.RecoveryReport().Fallbacks {
		fmt.Fprintln(l.witness, text)
	}
	return l.tables()
}

func (l *faultLife) tables() bool {
	if l.db == nil {
		return false
	}
	w, err := counters.Open(l.ctx, l.db)
	if l.note("tables", err) != nil {
		return false
	}
	l.w = w
	return true
}

// steps runs transactions of all workers in turn. In a database that does not
// wait for the disk they are acknowledged by close.
func (l *faultLife) steps(n int) {
	for i := range n {
		l.step(int32(i % faultWorkers))
	}
}

func (l *faultLife) step(worker int32) {
	if l.w == nil {
		return
	}
	seq, err := l.w.Step(l.ctx, worker)
	if l.note("step", err) == nil && l.o.Durability == rekindle.Sync {
		l.ack(worker, seq)
	}
}

func (l *faultLife) ack(worker int32, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[worker] = seq
}

func (l *faultLife) checkpoint() {
	if l.db != nil {
		l.note("checkpoint", l.db.Checkpoint(l.ctx))
	}
}

func (l *faultLife) compact() {
	if l.db != nil {
		l.note("compact", l.db.Compact(l.ctx))
	}
}

// read looks at everything.
func (l *faultLife) read() {
	if l.w != nil {
		l.note("read", l.w.Check(l.ctx, nil))
	}
}

// verify looks for damage, of which there is none but that a fault keeps files from
// being read, and what follows from that. A verification that was not completed
// says so, and need not tell of everything that it met.
func (l *faultLife) verify(verify func() (*rekindle.VerifyReport, error)) {
	report, err := verify()
	if l.note("verify", err) != nil {
		for _, e := range l.disk.Injected() {
			fmt.Fprintln(l.witness, e)
		}
		return
	}
	for _, finding := range report.Findings {
		fmt.Fprintln(l.witness, finding)
	}
	if report.Damage() && !strings.Contains(fmt.Sprint(report.Findings), errorfs.ErrInjected.Error()) {
		l.wrong = append(l.wrong, fmt.Errorf("verify finds damage: %v", report.Findings))
	}
}

const backupDir = "/copies/db"

// backup makes a copy, which is whole if it counts as made, and else is none, or
// whole too.
func (l *faultLife) backup() {
	acked := maps.Clone(l.acked)
	l.disk.Arm()
	made := l.note("backup", l.db.BackupOn(l.ctx, l.disk, backupDir)) == nil
	l.disk.Disarm()
	for _, mode := range []vfs.CrashMode{vfs.Kill, vfs.Strict} {
		cut := powerCut{disk: l.disk.Cut(mode), acked: acked}
		o := l.o
		o.ReadOnly = true
		db, err := rekindle.Open(l.ctx, backupDir, o.OnFS(cut.disk))
		if err != nil && !made {
			continue
		}
		if err == nil {
			err = errors.Join(checkContent(l.ctx, db, acked), db.Close(l.ctx))
		}
		if err != nil {
			l.wrong = append(l.wrong, fmt.Errorf("backup (made: %v), %v: %w", made, mode, err))
		}
	}
}

func checkContent(ctx context.Context, db *rekindle.DB, acked map[int32]int64) error {
	w, err := counters.Open(ctx, db)
	if err != nil {
		return err
	}
	return w.Check(ctx, acked)
}

func (l *faultLife) close() {
	if l.db != nil {
		l.note("close", l.db.Close(l.ctx))
	}
	l.db, l.w = nil, nil
}

// cut adds what a crash would leave now.
func (l *faultLife) cut(mode vfs.CrashMode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = append(l.cuts, powerCut{disk: l.disk.Cut(mode), acked: maps.Clone(l.acked)})
}

// end checks that the database can be used now that the faults are over, and what
// it has left on its disk.
func (l *faultLife) end() error {
	if l.wrong != nil {
		return errors.Join(l.wrong...)
	}
	if l.db == nil && !l.open() || l.w == nil && !l.tables() {
		if l.db == nil || !l.logFailed() {
			return errors.New("does not open when the faults are over")
		}
	} else if err := l.use(); err != nil {
		return fmt.Errorf("when the faults are over: %w", err)
	}
	if err := l.shut(); err != nil {
		return err
	}
	if n := l.disk.Mem.Handles(); n != 0 {
		return fmt.Errorf("%d handles stay open", n)
	}
	l.cut(l.last)
	for i, cut := range l.cuts {
		if err := l.survive(cut); err != nil {
			return fmt.Errorf("disk %d: %w", i, err)
		}
	}
	return nil
}

// logFailed reports whether the database has become read-only, for a reason.
func (l *faultLife) logFailed() bool {
	err := l.db.Update(l.ctx, func(*rekindle.Tx) error { return nil })
	if err == nil {
		_, err = l.w.Step(l.ctx, 0)
	}
	if !errors.Is(err, rekindle.ErrReadOnly) {
		return false
	}
	for _, e := range l.disk.Injected() {
		if e.Op.Kind.Mutates() || e.Op.Kind == vfs.OpClose {
			return true
		}
	}
	return false
}

// use commits, checks and checkpoints, or only checks if the log has failed.
func (l *faultLife) use() error {
	if err := l.repaired(); err != nil {
		return err
	}
	seq, err := l.w.Step(l.ctx, 0)
	if err == nil {
		if l.o.Durability == rekindle.Sync {
			l.ack(0, seq)
		}
		err = l.db.Checkpoint(l.ctx)
	} else if l.logFailed() {
		err = nil
	}
	return errors.Join(err, l.w.Check(l.ctx, l.acked))
}

// shut closes the database, which works unless its log has failed.
func (l *faultLife) shut() error {
	failed := l.w == nil || l.logFailed()
	err := l.db.Close(l.ctx)
	l.witness.Note(err)
	if failed && errors.Is(err, rekindle.ErrReadOnly) {
		return nil
	}
	return err
}

// survive opens what a crash has left: everything acknowledged is there, and what
// is committed now survives another one.
func (l *faultLife) survive(cut powerCut) error {
	o := l.o
	db, w, err := l.reopen(cut, o)
	if err != nil {
		return err
	}
	for worker := range int32(faultWorkers) {
		seq, err := w.Step(l.ctx, worker)
		if err != nil {
			return err
		}
		cut.acked[worker] = seq
	}
	if err := db.Checkpoint(l.ctx); err != nil { // by now all is durable
		return err
	}
	again := powerCut{disk: cut.disk.CrashClone(nil, vfs.Strict), acked: cut.acked}
	if err := db.Close(l.ctx); err != nil {
		return err
	}
	db, _, err = l.reopen(again, o)
	if err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	return db.Close(l.ctx)
}

func (l *faultLife) reopen(cut powerCut, o rekindle.Options) (*rekindle.DB, *counters.Workload, error) {
	o.ReadOnly = false
	o.Durability = rekindle.Sync
	o.VerifyOnOpen = o.VerifyOnOpen || l.harmed
	db, err := rekindle.Open(l.ctx, l.dir, o.OnFS(cut.disk))
	if err != nil {
		return nil, nil, err
	}
	w, err := counters.Open(l.ctx, db)
	if err == nil {
		err = w.Check(l.ctx, cut.acked)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close(l.ctx))
	}
	return db, w, nil
}

// faultProcedure is something durable that the engine does.
type faultProcedure struct {
	name string
	o    rekindle.Options
	dir  string
	base cutBase
	run  func(l *faultLife) // arms the disk
}

func faultOptions(strategy string) rekindle.Options {
	return rekindle.Options{IndexStrategy: strategy, SegmentBytes: 64 << 10, CheckpointBytes: -1, MemoryBudget: -1}
}

// faultProcedures lists everything that is done with one strategy.
func faultProcedures(t *testing.T, strategy string) []faultProcedure {
	o := faultOptions(strategy)
	streams, interval, none, budget := o, o, o, o
	streams.LogStreams = 3
	interval.Durability, none.Durability = rekindle.Interval(time.Millisecond), rekindle.None
	budget.MemoryBudget = 1
	closed, killed := livedWorkload(t, o)
	compactable, _ := livedWorkload(t, o.Eager())
	manyStreams, _ := livedWorkload(t, streams)
	verify, readOnly := o, o
	verify.VerifyOnOpen, readOnly.ReadOnly = true, true
	commits := func(l *faultLife) {
		l.open()
		l.disk.Arm()
		l.steps(17 * faultWorkers) // each rewrites its blocks once: there is a new segment
	}
	opens := func(l *faultLife) {
		l.disk.Arm()
		if l.open() {
			l.read()
			l.steps(3)
		}
	}
	procedures := []faultProcedure{
		{"create", o, "/new/place/db", cutBase{disk: vfs.NewMem()}, func(l *faultLife) {
			l.disk.Arm()
			l.open()
			l.steps(4)
			l.close()
		}},
		{"tables", o, "/db", cutBase{disk: vfs.NewMem()}, func(l *faultLife) {
			l.db, _ = rekindle.Open(l.ctx, l.dir, l.options())
			l.disk.Arm()
			l.tables()
			l.steps(4)
		}},
		{"commits", o, "/db", closed, commits},
		{"commits, interval", interval, "/db", closed, commits},
		{"commits, none", none, "/db", closed, commits},
		{"commits, streams", streams, "/db", manyStreams, func(l *faultLife) {
			l.open()
			l.disk.Arm()
			var all sync.WaitGroup
			for worker := range int32(faultWorkers) {
				all.Go(func() {
					for range 17 {
						l.step(worker)
					}
				})
			}
			all.Wait()
		}},
		{"checkpoints", o, "/db", closed, func(l *faultLife) {
			l.open()
			l.disk.Arm()
			for range 4 {
				l.steps(5)
				l.checkpoint()
			}
		}},
		{"compactions", o.Eager(), "/db", compactable, func(l *faultLife) {
			l.open()
			l.disk.Arm()
			for range 3 {
				l.compact()
				l.steps(5)
				l.checkpoint()
			}
		}},
		{"open", o, "/db", closed, opens},
		{"open, killed", o, "/db", killed, opens},
		{"open, killed, verify", verify, "/db", killed, opens},
		{"open, killed, read-only", readOnly, "/db", killed, func(l *faultLife) {
			l.disk.Arm()
			if l.open() {
				l.read()
			}
			l.close()
			l.o.ReadOnly = false
		}},
		{"convert", o, "/db", killed, func(l *faultLife) {
			l.disk.Arm()
			l.o.IndexStrategy = ""
			for _, to := range rekindle.IndexStrategies() {
				l.note("convert", rekindle.Convert(l.ctx, l.dir, to, l.options()))
			}
		}},
		{"freeze", budget, "/db", closed, func(l *faultLife) {
			l.open()
			l.steps(12)
			l.disk.Arm()
			for range 2 {
				l.db.FreezeNow()
				l.read()
				l.steps(3)
			}
		}},
		{"backup", o, "/db", closed, func(l *faultLife) {
			l.open()
			l.steps(3)
			l.backup()
		}},
		{"verify", o, "/db", killed, func(l *faultLife) {
			l.open()
			l.steps(3)
			l.disk.Arm()
			l.verify(func() (*rekindle.VerifyReport, error) { return l.db.Verify(l.ctx) })
			l.disk.Disarm()
			l.close()
			l.disk.Arm()
			l.verify(func() (*rekindle.VerifyReport, error) { return rekindle.Verify(l.ctx, l.dir, l.options()) })
		}},
		{"close", o, "/db", closed, func(l *faultLife) {
			l.open()
			l.steps(12)
			l.disk.Arm()
			l.close()
		}},
	}
	if strategy == "rebuild" { // has no files
		return procedures
	}
	harmed := cutBase{closed.disk.CrashClone(nil, vfs.Kill), closed.acked}
	harmIndexes(t, harmed.disk)
	return append(procedures, faultProcedure{"repair", o, "/db", harmed, func(l *faultLife) {
		l.harmed = true
		l.open()
		l.disk.Arm()
		l.read()
		l.disk.Disarm()
		l.note("repair", l.repaired())
		l.disk.Arm()
		l.checkpoint()
		l.steps(3)
	}})
}

// TestFaultMatrix runs everything durable with a fault of every kind at every
// n-th operation.
func TestFaultMatrix(t *testing.T) {
	stride := *faultStride
	if testing.Short() {
		stride *= 4
	}
	all := map[string]*faulttest.Counts{}
	first := 0 // differs from kind to kind, so that their faults hit different operations
	for _, strategy := range rekindle.IndexStrategies() {
		for _, p := range faultProcedures(t, strategy) {
			t.Run(path.Join(strategy, p.name), func(t *testing.T) {
				m := p.matrix(stride)
				operations, err := m.Operations(t.Context())
				require.NoError(t, err)
				var sum faulttest.Counts
				for _, kind := range faulttest.Kinds() {
					for _, forever := range []bool{false, true} {
						first += 53
						if m.First = 1 + first%stride; m.First > operations[kind.Name] {
							continue
						}
						counts, err := m.Run(t.Context(), kind, forever)
						if err != nil {
							t.Errorf("%v", err)
						}
						sum.Add(counts)
						if all[kind.Name] == nil {
							all[kind.Name] = &faulttest.Counts{}
						}
						all[kind.Name].Add(counts)
					}
				}
				t.Logf("%d operations; %v", operations["before"], sum)
			})
		}
	}
	for name, counts := range all {
		t.Logf("%s: %v", name, counts)
	}
}

func (p *faultProcedure) matrix(stride int) *faulttest.Matrix {
	tries := 0
	return &faulttest.Matrix{
		Base:     func() *vfs.Mem { return p.base.disk.CrashClone(nil, vfs.Kill) },
		Stride:   stride,
		Watchdog: time.Minute,
		Try: func(ctx context.Context, d *faulttest.Disk, w *faulttest.Witness) error {
			tries++
			modes := []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random, vfs.Kill}
			now, last := modes[tries%4], modes[tries/4%4]
			l := &faultLife{ctx: ctx, dir: p.dir, disk: d, witness: w, o: p.o, last: last, acked: maps.Clone(p.base.acked)}
			if l.acked == nil {
				l.acked = map[int32]int64{}
			}
			d.OnFault(func() { l.cut(now) })
			p.run(l)
			d.Disarm()
			return l.end()
		},
	}
}
