package micro

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench"
)

// Rekindle returns the system of this module with an index strategy.
func Rekindle(strategy string) System {
	return System{
		Name: "rekindle-" + strategy,
		Open: func(dir string, durable bool) (Store, error) { return openRekindle(dir, durable, strategy) },
	}
}

type row struct {
	Key   uint64 `rekindle:"key,pk"`
	Value []byte `rekindle:"value"`
}

// loadBatch is the number of rows of one loading transaction.
const loadBatch = 1000

type rekindleStore struct {
	db   *rekindle.DB
	rows *rekindle.Table[row]
}

func openRekindle(dir string, durable bool, strategy string) (Store, error) {
	options := rekindle.Options{IndexStrategy: strategy, Durability: rekindle.None}
	if durable {
		options.Durability = rekindle.Sync
	}
	ctx := context.Background()
	db, err := rekindle.Open(ctx, dir, &options)
	if err != nil {
		return nil, err
	}
	rows, err := rekindle.OpenTable[row](ctx, db, "rows")
	if err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	return &rekindleStore{db: db, rows: rows}, nil
}

func (s *rekindleStore) Load(keys []uint64) error {
	ctx := context.Background()
	for len(keys) > 0 {
		n := min(loadBatch, len(keys))
		err := s.db.Update(ctx, func(tx *rekindle.Tx) error { return s.insert(tx, keys[:n]) })
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return bench.Checkpoint(ctx, s.db)
}

func (s *rekindleStore) insert(tx *rekindle.Tx, keys []uint64) error {
	if err := tx.SetDurability(rekindle.None); err != nil {
		return err
	}
	var r row
	for _, key := range keys {
		r.Key, r.Value = key, AppendValue(r.Value[:0], key, 0)
		if err := s.rows.Insert(tx, &r); err != nil {
			return err
		}
	}
	return nil
}

func (s *rekindleStore) Close() error { return s.db.Close(context.Background()) }

// What recovery may cost beside its index part: the aim of the project.
const (
	recoveryBase      = 3 * time.Millisecond
	recoveryPerRecord = 250 * time.Nanosecond
)

// Memory is what the Go collector does not see.
func (s *rekindleStore) Memory() map[string]float64 {
	return map[string]float64{"arena-MiB": float64(s.db.Stats().ArenaReserved) / (1 << 20)}
}

// Recovery has the phases and beside them, as a sum, those of the indexes.
func (s *rekindleStore) Recovery() map[string]float64 {
	report := s.db.RecoveryReport()
	ofIndexes := bench.IndexPart(report)
	m := map[string]float64{}
	for _, phase := range report.Phases {
		m["phase-"+strings.ReplaceAll(phase.Name, "/", "-")+"-ms"] = milliseconds(phase.Duration)
	}
	m["index-ms"] = milliseconds(ofIndexes)
	m["without-index-ms"] = milliseconds(report.Total - ofIndexes)
	m["budget-ms"] = milliseconds(recoveryBase + time.Duration(report.RecordsReplayed)*recoveryPerRecord)
	m["tail-records"] = float64(report.RecordsReplayed)
	return m
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

func (s *rekindleStore) Session() (Session, error) {
	session := &rekindleSession{store: s, ctx: context.Background()}
	session.get, session.getMany, session.update = session.doGet, session.doGetMany, session.doUpdate
	return session, nil
}

// rekindleSession keeps its row, and its functions for transactions, so that
// it does not allocate them for each call.
type rekindleSession struct {
	store *rekindleStore
	ctx   context.Context
	row   row
	keys  []uint64
	rows  []row

	get, getMany, update func(tx *rekindle.Tx) error
}

func (s *rekindleSession) Read(key uint64) error {
	s.row.Key = key
	return s.store.db.View(s.ctx, s.get)
}

func (s *rekindleSession) ReadMany(keys []uint64) error {
	s.keys = keys
	return s.store.db.View(s.ctx, s.getMany)
}

func (s *rekindleSession) doGet(tx *rekindle.Tx) error {
	if err := s.store.rows.Get(tx, &s.row); err != nil {
		return err
	}
	return CheckValue(s.row.Key, s.row.Value)
}

func (s *rekindleSession) doGetMany(tx *rekindle.Tx) error {
	s.rows = s.rows[:0]
	for _, key := range s.keys {
		s.rows = append(s.rows, row{Key: key})
	}
	missing, err := s.store.rows.GetMany(tx, s.rows)
	if err != nil || len(missing) > 0 {
		return errors.Join(err, fmt.Errorf("%d of %d rows are missing", len(missing), len(s.rows)))
	}
	for i := range s.rows {
		if err := CheckValue(s.rows[i].Key, s.rows[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func (s *rekindleSession) Update(key uint64, value []byte) error {
	s.row.Key, s.row.Value = key, value
	return s.store.db.Update(s.ctx, s.update)
}

func (s *rekindleSession) doUpdate(tx *rekindle.Tx) error { return s.store.rows.Update(tx, &s.row) }

func (s *rekindleSession) Scan(key uint64, n int) (found int, err error) {
	err = s.store.db.View(s.ctx, func(tx *rekindle.Tx) error {
		found = 0
		return s.store.rows.Visit(tx, rekindle.Query{From: rekindle.Key(key), Limit: n}, func(r *row) error {
			found++
			return CheckValue(r.Key, r.Value)
		})
	})
	return found, err
}

func (s *rekindleSession) Close() error { return nil }
