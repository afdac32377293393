package torture

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/counters"
	"github.com/rekindledb/rekindle/bench/tpcc"
)

// clients run transactions, each for itself.
type clients interface {
	// next runs the next transaction of a client to its acknowledgement.
	next(ctx context.Context, client int32) (Ack, error)
}

// openClients opens the tables and makes the clients of one life.
func openClients(ctx context.Context, db *rekindle.DB, l *Life) (clients, error) {
	if l.Database.Workload == Counters {
		w, err := counters.Open(ctx, db)
		return counterClients{w}, err
	}
	tables, err := tpcc.OpenTables(ctx, db)
	if err != nil {
		return nil, err
	}
	constants := tpcc.RunConstants(l.Database.Seed, tpcc.LoadConstants(l.Database.Seed))
	var terminals terminalClients
	for i := range l.Database.Clients {
		terminals = append(terminals, tpcc.NewTerminal(tables, tpcc.TerminalOptions{
			Scale:     l.Database.Scale,
			Constants: constants,
			Seed:      l.Seed,
			Number:    i,
		}))
	}
	return terminals, nil
}

type counterClients struct{ w *counters.Workload }

// next goes on after the retries of Update: on a machine that is busy a long run of
// conflicts about the shared row is load and not a fault.
func (c counterClients) next(ctx context.Context, client int32) (Ack, error) {
	for {
		number, err := c.w.Step(ctx, client)
		if !errors.Is(err, rekindle.ErrConflict) || ctx.Err() != nil {
			return Ack{Client: client, Number: number}, err
		}
	}
}

type terminalClients []*tpcc.Terminal

func (c terminalClients) next(ctx context.Context, client int32) (Ack, error) {
	result, err := c[client].Next(ctx)
	ack := Ack{Client: client}
	if !result.RolledBack {
		ack.Receipts = result.Receipts
	}
	return ack, err
}
