package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
)

func TestCheckpointCoversWhatWasNotWaitedFor(t *testing.T) {
	type row struct {
		ID int64 `rekindle:",pk"`
	}
	ctx := t.Context()
	db, err := rekindle.Open(ctx, t.TempDir(), &rekindle.Options{Durability: rekindle.None})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(ctx))) }()
	rows, err := rekindle.OpenTable[row](ctx, db, "rows")
	require.NoError(t, err)
	for id := range int64(100) {
		require.NoError(t, db.Update(ctx, func(tx *rekindle.Tx) error { return rows.Insert(tx, &row{id}) }))
		if id%10 == 0 {
			visible := db.Stats().VisibleCTS
			require.NoError(t, Checkpoint(ctx, db))
			require.GreaterOrEqual(t, db.Stats().CheckpointCTS, visible)
		}
	}
}

func TestIndexPartIsThatOfEveryIndex(t *testing.T) {
	r := rekindle.RecoveryReport{Phases: []rekindle.Phase{
		{Name: "map", Duration: time.Second},
		{Name: "index/item", Duration: 2 * time.Millisecond},
		{Name: "replay", Duration: time.Second},
		{Name: "index/stock", Duration: 3 * time.Millisecond},
	}}
	require.Equal(t, 5*time.Millisecond, IndexPart(r))
}
