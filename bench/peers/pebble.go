package peers

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rekindledb/rekindle/bench/micro"
)

// pebbleCache holds all rows, as the other stores do by themselves.
const pebbleCache = 4 << 30

type pebbleStore struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

// quiet drops what the store logs.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

func openPebble(dir string, durable bool) (micro.Store, error) {
	cache := pebble.NewCache(pebbleCache)
	defer cache.Unref()
	db, err := pebble.Open(dir, &pebble.Options{Cache: cache, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	s := &pebbleStore{db: db, write: pebble.NoSync}
	if durable {
		s.write = pebble.Sync
	}
	return s, nil
}

func (s *pebbleStore) Load(keys []uint64) error {
	if err := inBatches(keys, s.insert); err != nil {
		return err
	}
	return s.db.Flush()
}

func (s *pebbleStore) insert(keys []uint64) error {
	batch := s.db.NewBatch()
	for _, key := range keys {
		var k [8]byte
		if err := batch.Set(putKey(&k, key), micro.AppendValue(nil, key, 0), nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}

func (s *pebbleStore) Session() (micro.Session, error) { return &pebbleSession{store: s}, nil }

func (s *pebbleStore) Close() error { return s.db.Close() }

type pebbleSession struct {
	store *pebbleStore
	key   [8]byte
}

func (s *pebbleSession) Read(key uint64) error { return s.get(s.store.db, key) }

func (s *pebbleSession) ReadMany(keys []uint64) error {
	snapshot := s.store.db.NewSnapshot()
	for _, key := range keys {
		if err := s.get(snapshot, key); err != nil {
			return errors.Join(err, snapshot.Close())
		}
	}
	return snapshot.Close()
}

func (s *pebbleSession) get(r pebble.Reader, key uint64) error {
	value, closer, err := r.Get(putKey(&s.key, key))
	if err != nil {
		return err
	}
	return errors.Join(micro.CheckValue(key, value), closer.Close())
}

func (s *pebbleSession) Update(key uint64, value []byte) error {
	return s.store.db.Set(putKey(&s.key, key), value, s.store.write)
}

func (s *pebbleSession) Scan(key uint64, n int) (int, error) {
	it, err := s.store.db.NewIter(&pebble.IterOptions{LowerBound: putKey(&s.key, key)})
	if err != nil {
		return 0, err
	}
	found := 0
	for ok := it.First(); ok && found < n && err == nil; ok = it.Next() {
		err = micro.CheckValue(key, it.Value())
		found++
	}
	return found, errors.Join(err, it.Close())
}

func (s *pebbleSession) Close() error { return nil }
