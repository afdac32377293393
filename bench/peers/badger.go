package peers

import (
	"github.com/dgraph-io/badger/v4"

	"github.com/rekindledb/rekindle/bench/micro"
)

type badgerStore struct{ db *badger.DB }

func openBadger(dir string, durable bool) (micro.Store, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithSyncWrites(durable))
	if err != nil {
		return nil, err
	}
	return &badgerStore{db}, nil
}

func (s *badgerStore) Load(keys []uint64) error {
	batch := s.db.NewWriteBatch()
	defer batch.Cancel()
	for _, key := range keys {
		k := new([8]byte) // the batch keeps it
		if err := batch.Set(putKey(k, key), micro.AppendValue(nil, key, 0)); err != nil {
			return err
		}
	}
	if err := batch.Flush(); err != nil {
		return err
	}
	return s.db.Sync()
}

func (s *badgerStore) Session() (micro.Session, error) { return &badgerSession{db: s.db}, nil }

func (s *badgerStore) Close() error { return s.db.Close() }

type badgerSession struct {
	db  *badger.DB
	key [8]byte
}

func (s *badgerSession) Read(key uint64) error {
	return s.db.View(func(tx *badger.Txn) error { return s.get(tx, key) })
}

func (s *badgerSession) ReadMany(keys []uint64) error {
	return s.db.View(func(tx *badger.Txn) error {
		for _, key := range keys {
			if err := s.get(tx, key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *badgerSession) get(tx *badger.Txn, key uint64) error {
	item, err := tx.Get(putKey(&s.key, key))
	if err != nil {
		return err
	}
	return item.Value(func(v []byte) error { return micro.CheckValue(key, v) })
}

func (s *badgerSession) Update(key uint64, value []byte) error {
	return s.db.Update(func(tx *badger.Txn) error { return tx.Set(putKey(&s.key, key), value) })
}

func (s *badgerSession) Scan(key uint64, n int) (found int, err error) {
	err = s.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Seek(putKey(&s.key, key)); it.Valid() && found < n; it.Next() {
			check := func(v []byte) error { return micro.CheckValue(key, v) }
			if err := it.Item().Value(check); err != nil {
				return err
			}
			found++
		}
		return nil
	})
	return found, err
}

func (s *badgerSession) Close() error { return nil }
