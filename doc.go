// Package rekindle is an embeddable in-memory OLTP engine that restarts
// instantly: opening a database maps a few files and replays a short log tail,
// it does not load rows.
//
// A database is a directory. Open it once per process, make tables from struct
// types, and work in transactions:
//
//	db, err := rekindle.Open(ctx, "data", nil)
//	users, err := rekindle.OpenTable[User](ctx, db, "users")
//	err = db.Update(ctx, func(tx *rekindle.Tx) error {
//		return users.Insert(tx, &User{ID: 1, Name: "Ada"})
//	})
//
// # Transactions
//
// Transactions are optimistic and see a snapshot: readers never wait for
// writers nor writers for readers. Of two transactions that write the same row
// the first one to do so wins, the other gets ErrConflict at once; Update
// retries it. The isolation level is snapshot isolation: a transaction reads
// one consistent state and no update is lost, but two transactions that read
// what the other one writes can both commit (write skew).
//
// A commit returns when it is on disk, unless Options.Durability says
// otherwise. View reads only what is on disk in a database with the default
// durability, so a reader never acts on what a crash could take back.
//
// # Lifetime and concurrency
//
// A DB and its tables may be used by any number of goroutines. A Tx belongs to
// one goroutine at a time. Everything handed out is a copy, safe after the
// transaction. After Close every call returns ErrClosed.
package rekindle
