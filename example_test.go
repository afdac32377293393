package rekindle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/rekindledb/rekindle"
)

type Account struct {
	ID      int64  `rekindle:",pk"`
	Owner   string `rekindle:",index"`
	Balance int64
}

// Example is the quick start of the README.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rekindle")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db, err := rekindle.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close(ctx)
	accounts, err := rekindle.OpenTable[Account](ctx, db, "accounts")
	if err != nil {
		log.Fatal(err)
	}

	// Update commits durably, and runs again after a conflict.
	err = db.Update(ctx, func(tx *rekindle.Tx) error {
		if err := accounts.Insert(tx, &Account{ID: 1, Owner: "Ada", Balance: 100}); err != nil {
			return err
		}
		return accounts.Insert(tx, &Account{ID: 2, Owner: "Ada", Balance: 20})
	})
	if err != nil {
		log.Fatal(err)
	}

	// View reads one consistent snapshot.
	err = db.View(ctx, func(tx *rekindle.Tx) error {
		byOwner := rekindle.Query{Index: "owner", Prefix: rekindle.Key("Ada")}
		for a, err := range accounts.Scan(tx, byOwner) {
			if err != nil {
				return err
			}
			fmt.Println(a.ID, a.Owner, a.Balance)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 Ada 100
	// 2 Ada 20
}

// openExample makes a database for an example, and a table in it.
func openExample[T any](ctx context.Context, table string) (db *rekindle.DB, rows *rekindle.Table[T], end func()) {
	dir, err := os.MkdirTemp("", "rekindle")
	if err != nil {
		log.Fatal(err)
	}
	if db, err = rekindle.Open(ctx, dir, nil); err != nil {
		log.Fatal(err)
	}
	if rows, err = rekindle.OpenTable[T](ctx, db, table); err != nil {
		log.Fatal(err)
	}
	return db, rows, func() {
		if err := errors.Join(db.Close(ctx), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

type Event struct {
	Device string              `rekindle:",pk=1"`
	Number int64               `rekindle:",pk=2"`
	Level  rekindle.Null[int8] `rekindle:",index"`
	Text   string
}

// A range behind a prefix, the newest first; and the rows that have no level.
func ExampleQuery() {
	ctx := context.Background()
	db, events, end := openExample[Event](ctx, "events")
	defer end()
	err := db.Update(ctx, func(tx *rekindle.Tx) error {
		for i := range int64(10) {
			e := Event{Device: "door", Number: i, Text: fmt.Sprint("opened ", i)}
			e.Level = rekindle.Null[int8]{V: 3, Valid: i%4 > 0}
			if err := events.Insert(tx, &e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	queries := []rekindle.Query{
		{Prefix: rekindle.Key("door"), From: rekindle.Key(3), To: rekindle.Key(9), Reverse: true, Limit: 3},
		{Index: "level", Prefix: rekindle.Key(nil)},
	}
	err = db.View(ctx, func(tx *rekindle.Tx) error {
		for _, q := range queries {
			for e, err := range events.Scan(tx, q) {
				if err != nil {
					return err
				}
				fmt.Println(e.Text)
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// opened 8
	// opened 7
	// opened 6
	// opened 0
	// opened 4
	// opened 8
}

type Member struct {
	ID    int64  `rekindle:",pk"`
	Email string `rekindle:",unique"`
}

// What kind of error it is, and what it is about.
func ExampleDuplicateKeyError() {
	ctx := context.Background()
	db, members, end := openExample[Member](ctx, "members")
	defer end()
	err := db.Update(ctx, func(tx *rekindle.Tx) error {
		if err := members.Insert(tx, &Member{ID: 1, Email: "ada@example.com"}); err != nil {
			return err
		}
		return members.Insert(tx, &Member{ID: 2, Email: "ada@example.com"})
	})
	var taken *rekindle.DuplicateKeyError
	fmt.Println(errors.Is(err, rekindle.ErrDuplicateKey), errors.As(err, &taken))
	fmt.Println(taken.Table, taken.Index, taken.Key)
	// Output:
	// true true
	// members email ("ada@example.com")
}
