package rekindle_test

import (
	"context"
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
