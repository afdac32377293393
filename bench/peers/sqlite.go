package peers

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/rekindledb/rekindle/bench/micro"
)

type sqliteStore struct{ db *sql.DB }

func openSQLite(dir string, durable bool) (micro.Store, error) {
	synchronous := "OFF"
	if durable {
		synchronous = "FULL"
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "data")+
		"?_journal_mode=WAL&_busy_timeout=60000&_synchronous="+synchronous)
	if err != nil {
		return nil, err
	}
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS rows (key INTEGER PRIMARY KEY, value BLOB NOT NULL)")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqliteStore{db}, nil
}

// Load inserts in one transaction and moves it from the log to the database.
func (s *sqliteStore) Load(keys []uint64) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if err := insertSQLite(tx, keys); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = s.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

func insertSQLite(tx *sql.Tx, keys []uint64) error {
	insert, err := tx.Prepare("INSERT INTO rows VALUES (?, ?)")
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := insert.Exec(int64(key), micro.AppendValue(nil, key, 0)); err != nil {
			return errors.Join(err, insert.Close())
		}
	}
	return insert.Close()
}

func (s *sqliteStore) Close() error { return s.db.Close() }

// Session prepares its statements on a connection of its own.
func (s *sqliteStore) Session() (micro.Session, error) {
	ctx := context.Background()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	session := &sqliteSession{ctx: ctx, conn: conn}
	for statement, text := range map[**sql.Stmt]string{
		&session.read:   "SELECT value FROM rows WHERE key = ?",
		&session.update: "UPDATE rows SET value = ? WHERE key = ?",
		&session.scan:   "SELECT value FROM rows WHERE key >= ? ORDER BY key LIMIT ?",
		&session.begin:  "BEGIN",
		&session.commit: "COMMIT",
	} {
		if *statement, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, session.Close())
		}
	}
	return session, nil
}

type sqliteSession struct {
	ctx                               context.Context
	conn                              *sql.Conn
	read, update, scan, begin, commit *sql.Stmt
}

func (s *sqliteSession) Read(key uint64) error {
	_, err := s.query(key, s.read, int64(key))
	return err
}

// query checks the values of the rows; none is an error unless scan.
func (s *sqliteSession) query(key uint64, statement *sql.Stmt, args ...any) (int, error) {
	rows, err := statement.QueryContext(s.ctx, args...)
	if err != nil {
		return 0, err
	}
	n := 0
	for ; rows.Next() && err == nil; n++ {
		var value sql.RawBytes
		if err = rows.Scan(&value); err == nil {
			err = micro.CheckValue(key, value)
		}
	}
	err = errors.Join(err, rows.Err(), rows.Close())
	if err == nil && n == 0 && statement == s.read {
		err = errAbsent(key)
	}
	return n, err
}

func (s *sqliteSession) ReadMany(keys []uint64) error {
	if _, err := s.begin.ExecContext(s.ctx); err != nil {
		return err
	}
	var err error
	for _, key := range keys {
		if err = s.Read(key); err != nil {
			break
		}
	}
	_, commitErr := s.commit.ExecContext(s.ctx)
	return errors.Join(err, commitErr)
}

func (s *sqliteSession) Update(key uint64, value []byte) error {
	_, err := s.update.ExecContext(s.ctx, value, int64(key))
	return err
}

func (s *sqliteSession) Scan(key uint64, n int) (int, error) {
	return s.query(key, s.scan, int64(key), n)
}

func (s *sqliteSession) Close() error {
	var err error
	for _, statement := range []*sql.Stmt{s.read, s.update, s.scan, s.begin, s.commit} {
		if statement != nil {
			err = errors.Join(err, statement.Close())
		}
	}
	return errors.Join(err, s.conn.Close())
}
