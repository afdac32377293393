package peers

import (
	"errors"
	"path/filepath"

	"github.com/tidwall/buntdb"

	"github.com/rekindledb/rekindle/bench/micro"
)

type buntStore struct {
	db      *buntdb.DB
	durable bool
}

func openBunt(dir string, durable bool) (micro.Store, error) {
	db, err := buntdb.Open(filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	s := &buntStore{db: db, durable: durable}
	if err := s.sync(durable); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *buntStore) sync(durable bool) error {
	var c buntdb.Config
	if err := s.db.ReadConfig(&c); err != nil {
		return err
	}
	c.SyncPolicy = buntdb.Never
	if durable {
		c.SyncPolicy = buntdb.Always
	}
	return s.db.SetConfig(c)
}

// Load commits the last batch durably, and all before it with that.
func (s *buntStore) Load(keys []uint64) error {
	if err := s.sync(false); err != nil {
		return err
	}
	last := max(0, len(keys)-loadBatch)
	if err := inBatches(keys[:last], s.insert); err != nil {
		return err
	}
	if err := s.sync(true); err != nil {
		return err
	}
	if err := s.insert(keys[last:]); err != nil {
		return err
	}
	return s.sync(s.durable)
}

func (s *buntStore) insert(keys []uint64) error {
	return s.db.Update(func(tx *buntdb.Tx) error {
		for _, key := range keys {
			var k [8]byte
			_, _, err := tx.Set(string(putKey(&k, key)), string(micro.AppendValue(nil, key, 0)), nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *buntStore) Session() (micro.Session, error) { return &buntSession{db: s.db}, nil }

func (s *buntStore) Close() error { return s.db.Close() }

type buntSession struct {
	db  *buntdb.DB
	key [8]byte
}

func (s *buntSession) Read(key uint64) error {
	return s.db.View(func(tx *buntdb.Tx) error { return s.get(tx, key) })
}

func (s *buntSession) ReadMany(keys []uint64) error {
	return s.db.View(func(tx *buntdb.Tx) error {
		for _, key := range keys {
			if err := s.get(tx, key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *buntSession) get(tx *buntdb.Tx, key uint64) error {
	value, err := tx.Get(string(putKey(&s.key, key)))
	if err != nil {
		return err
	}
	return checkText(key, value)
}

func checkText(key uint64, value string) error {
	if len(value) != micro.ValueSize {
		return micro.CheckValue(key, []byte(value))
	}
	return nil
}

func (s *buntSession) Update(key uint64, value []byte) error {
	return s.db.Update(func(tx *buntdb.Tx) error {
		_, _, err := tx.Set(string(putKey(&s.key, key)), string(value), nil)
		return err
	})
}

func (s *buntSession) Scan(key uint64, n int) (found int, err error) {
	viewErr := s.db.View(func(tx *buntdb.Tx) error {
		return tx.AscendGreaterOrEqual("", string(putKey(&s.key, key)), func(_, value string) bool {
			if found == n {
				return false
			}
			found++
			err = checkText(key, value)
			return err == nil
		})
	})
	return found, errors.Join(err, viewErr)
}

func (s *buntSession) Close() error { return nil }
