package peers

import (
	"errors"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/rekindledb/rekindle/bench/micro"
)

var boltBucket = []byte("rows")

type boltStore struct {
	db       *bbolt.DB
	sessions atomic.Int32
}

func openBolt(dir string, durable bool) (micro.Store, error) {
	db, err := bbolt.Open(filepath.Join(dir, "data"), 0o600, &bbolt.Options{NoSync: !durable, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &boltStore{db: db}, nil
}

func (s *boltStore) Load(keys []uint64) error {
	noSync := s.db.NoSync
	s.db.NoSync = true
	defer func() { s.db.NoSync = noSync }()
	err := inBatches(keys, func(keys []uint64) error {
		return s.db.Update(func(tx *bbolt.Tx) error { return insertBolt(tx.Bucket(boltBucket), keys) })
	})
	if err != nil {
		return err
	}
	return s.db.Sync()
}

func insertBolt(rows *bbolt.Bucket, keys []uint64) error {
	for _, key := range keys {
		var k [8]byte
		if err := rows.Put(putKey(&k, key), micro.AppendValue(nil, key, 0)); err != nil {
			return err
		}
	}
	return nil
}

func (s *boltStore) Session() (micro.Session, error) {
	s.sessions.Add(1)
	return &boltSession{store: s}, nil
}

func (s *boltStore) Close() error { return s.db.Close() }

type boltSession struct {
	store *boltStore
	key   [8]byte
}

func (s *boltSession) Read(key uint64) error {
	return s.store.db.View(func(tx *bbolt.Tx) error { return s.get(tx.Bucket(boltBucket), key) })
}

func (s *boltSession) ReadMany(keys []uint64) error {
	return s.store.db.View(func(tx *bbolt.Tx) error {
		rows := tx.Bucket(boltBucket)
		for _, key := range keys {
			if err := s.get(rows, key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *boltSession) get(rows *bbolt.Bucket, key uint64) error {
	return micro.CheckValue(key, rows.Get(putKey(&s.key, key)))
}

// Update joins the updates of other goroutines, if there are any, in one
// commit; alone, that would only wait for them.
func (s *boltSession) Update(key uint64, value []byte) error {
	put := func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Put(putKey(&s.key, key), value) }
	if s.store.sessions.Load() > 1 {
		return s.store.db.Batch(put)
	}
	return s.store.db.Update(put)
}

func (s *boltSession) Scan(key uint64, n int) (found int, err error) {
	err = s.store.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(boltBucket).Cursor()
		for k, v := c.Seek(putKey(&s.key, key)); k != nil && found < n; k, v = c.Next() {
			if err := micro.CheckValue(key, v); err != nil {
				return err
			}
			found++
		}
		return nil
	})
	return found, err
}

func (s *boltSession) Close() error {
	s.store.sessions.Add(-1)
	return nil
}
