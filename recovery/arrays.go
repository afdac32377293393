package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rekindledb/rekindle/gc"
	"github.com/rekindledb/rekindle/indirection"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/logstream"
	"github.com/rekindledb/rekindle/rowid"
	"github.com/rekindledb/rekindle/txn"
)

// change is the new word of a slot: in any case, or only if the word before it
// is onlyIf. The changes of a row are made by order.
type change struct {
	row    rowid.ID
	word   indirection.Word
	onlyIf indirection.Word
	order  int
}

// writeArrays brings the array files up to date.
func (d *draft) writeArrays(ctx context.Context) error {
	if d.newest() == nil {
		return d.scanArrays(ctx)
	}
	changes, err := d.collect(ctx)
	if err != nil {
		return err
	}
	d.changes = len(changes)
	last := map[rowid.Table]TableImage{}
	for _, t := range d.newest().Tables {
		last[t.Table] = t
	}
	for _, table := range tableIDs(last, changes) {
		n := countOf(changes, table)
		if n == 0 {
			d.Checkpoint.Tables = append(d.Checkpoint.Tables, last[table])
		} else if err := d.fold(ctx, table, changes[:n]); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return d.compareWithScan(ctx)
}

// collect reads the log since the last checkpoint and returns the changes that
// count, in the order of rows.
func (d *draft) collect(ctx context.Context) ([]change, error) {
	o := scanOptions(d.files, d.dir, &d.header, d.newest())
	o.UntilRound = d.Round
	var changes []change
	var y yielder
	add := func(a logstream.Address, r logstream.Record) error {
		word, onlyIf := effect(a, r.Kind, r.Origin())
		changes = append(changes, change{r.Row, word, onlyIf, len(changes)})
		y.step()
		return nil
	}
	_, err := logstream.Scan(ctx, o, func(g *logstream.Group) error { return g.Records(add) })
	if err != nil {
		return nil, err
	}
	changes = sortYielding(changes, func(a, b change) int {
		if a.row != b.row {
			return cmp.Compare(a.row, b.row)
		}
		return cmp.Compare(a.order, b.order)
	})
	return dropOverwritten(changes), nil
}

// dropOverwritten drops, in place, what comes before the last change of a row
// that has no condition.
func dropOverwritten(changes []change) []change {
	kept := changes[:0]
	for len(changes) > 0 {
		n := countOfRow(changes)
		from := n - 1
		for from > 0 && changes[from].onlyIf != 0 {
			from--
		}
		kept = append(kept, changes[from:n]...)
		changes = changes[n:]
	}
	return kept
}

// countOfRow counts the changes at the front that belong to one row.
func countOfRow(changes []change) int {
	n := 1
	for n < len(changes) && changes[n].row == changes[0].row {
		n++
	}
	return n
}

// settle makes the changes of one row, whose word was old before them.
func settle(old indirection.Word, changes []change) indirection.Word {
	word := old
	for _, c := range changes {
		if c.onlyIf == 0 || c.onlyIf == word {
			word = c.word
		}
	}
	return word
}

// tableIDs lists the tables of the last checkpoint and of the changes,
// ascending.
func tableIDs(last map[rowid.Table]TableImage, changes []change) []rowid.Table {
	var ids []rowid.Table
	for table := range last {
		ids = append(ids, table)
	}
	for len(changes) > 0 {
		table := changes[0].row.Table()
		ids = append(ids, table)
		changes = changes[countOf(changes, table):]
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// countOf counts the changes of a table at the front of a list that has none
// of a table below it.
func countOf(changes []change, table rowid.Table) int {
	n, _ := slices.BinarySearchFunc(changes, table, func(c change, t rowid.Table) int {
		if c.row.Table() <= t { // not below t+1, which the last table does not have
			return -1
		}
		return 1
	})
	return n
}

// fold writes the next generation of a table's array file.
func (d *draft) fold(ctx context.Context, table rowid.Table, changes []change) error {
	prev := d.Checkpointer.images[table]
	var high uint64
	if prev != nil {
		high = prev.HighWater()
	}
	high = max(high, changes[len(changes)-1].row.Ordinal()+1)
	return d.build(ctx, table, prev, high, func(b *indirection.Builder) error {
		for len(changes) > 0 {
			n := countOfRow(changes)
			if err := d.foldRow(b, changes[:n]); err != nil {
				return err
			}
			changes = changes[n:]
		}
		return nil
	})
}

// foldRow makes the changes of one row.
func (d *draft) foldRow(b *indirection.Builder, changes []change) error {
	var old indirection.Word
	var err error
	ordinal := changes[0].row.Ordinal()
	if changes[0].onlyIf != 0 { // only then it matters what was there
		old, err = b.Word(ordinal)
	}
	if err != nil {
		return err
	}
	return d.apply(b, ordinal, settle(old, changes))
}

// apply changes one slot and keeps the books of live log bytes.
func (d *draft) apply(b *indirection.Builder, ordinal uint64, word indirection.Word) error {
	d.steps.step()
	old, err := b.Change(ordinal, word)
	d.account(d.live, old, -1)
	d.account(d.live, word, +1)
	return err
}

func (d *draft) account(live map[gc.SegmentID]int64, word indirection.Word, sign int64) {
	if word == 0 {
		return
	}
	a := word.Address()
	first := a.Position() &^ logstream.Position(d.header.SegmentBytes-1)
	live[gc.SegmentID{Stream: a.Stream(), First: first}] += sign * int64(a.SizeBound())
}

// build writes an array file, reads it back past the page cache and opens it.
func (d *draft) build(ctx context.Context, table rowid.Table, prev *indirection.Image, high uint64, feed func(*indirection.Builder) error) error {
	path := arrayPath(d.dir, d.Number, table)
	f, err := d.files.Create(path)
	if err != nil {
		return err
	}
	b := indirection.NewBuilder(prev, f, d.Number, table, d.header.DatabaseID)
	var g indirection.Generation
	if err = feed(b); err == nil {
		g, err = b.Finish(high)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("array of table %d: %w", table, err)
	}
	if err := indirection.VerifyGeneration(ctx, d.files, path, g); err != nil {
		return err
	}
	image, err := indirection.OpenImage(d.files, g, func(n uint64) string { return arrayPath(d.dir, n, table) }, d.header.DatabaseID)
	if err != nil {
		return err
	}
	d.images[table] = image
	d.bytes += g.Size
	d.Checkpoint.Tables = append(d.Checkpoint.Tables, TableImage{Table: table, Generation: g, Files: arrayFiles(table, image)})
	return nil
}

func arrayFiles(table rowid.Table, image *indirection.Image) []string {
	var names []string
	for _, g := range image.Generations() {
		names = append(names, arrayName(g.Number, table))
	}
	return names
}

// scanArrays writes the array files from the running engine: what the first
// checkpoint does, which has no predecessor to fold into.
func (d *draft) scanArrays(ctx context.Context) error {
	tables := d.Engine.Tables()
	slices.SortFunc(tables, func(a, b *txn.Table) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range tables {
		err := d.build(ctx, t.ID, nil, t.Rows.HighWater(), func(b *indirection.Builder) error {
			return d.visit(ctx, t, func(ordinal uint64, word indirection.Word) error {
				d.changes++
				return d.apply(b, ordinal, word)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// visitBatch rows are looked at under one pin of the epoch.
const visitBatch = 4096

// visit calls f, unpinned, with the log address of every row that exists at
// TSc.
func (d *draft) visit(ctx context.Context, t *txn.Table, f func(uint64, indirection.Word) error) error {
	var batch []change
	for next := uint64(1); ; {
		batch = batch[:0]
		err := t.Rows.Scan(next, func(ordinal uint64, word indirection.Word) bool {
			next = ordinal + 1
			if address := d.Manager.AddressAt(word, d.CTS); address != 0 {
				batch = append(batch, change{row: rowid.Make(t.ID, ordinal), word: indirection.FromAddress(address)})
			}
			return len(batch) < visitBatch
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for _, c := range batch {
			if err := f(c.row.Ordinal(), c.word); err != nil {
				return err
			}
		}
		if len(batch) < visitBatch {
			return nil
		}
	}
}

// compareWithScan checks, in builds with invariants, that the folded arrays
// are those of the running engine, and that the live bytes are what they name.
func (d *draft) compareWithScan(ctx context.Context) error {
	if !invariants.Enabled {
		return nil
	}
	counted := map[gc.SegmentID]int64{}
	for _, t := range d.Engine.Tables() {
		image := d.images[t.ID]
		if image == nil {
			image = d.Checkpointer.images[t.ID]
		}
		if err := d.compare(ctx, t, image, counted); err != nil {
			return err
		}
	}
	maps.DeleteFunc(d.live, func(_ gc.SegmentID, bytes int64) bool { return bytes == 0 })
	if !maps.Equal(d.live, counted) {
		invariants.Fail("checkpoint %d: live bytes of segments are %v by folding, %v by counting", d.Number, d.live, counted)
	}
	return nil
}

// compare also counts what is live in the image.
func (d *draft) compare(ctx context.Context, t *txn.Table, image *indirection.Image, counted map[gc.SegmentID]int64) error {
	if image == nil { // created after TSc
		return nil
	}
	seen := map[uint64]indirection.Word{}
	err := d.visit(ctx, t, func(ordinal uint64, word indirection.Word) error {
		seen[ordinal] = word
		return nil
	})
	if err != nil {
		return err
	}
	var page [indirection.PageSlots]indirection.Word
	for p := uint64(0); p*indirection.PageSlots < image.HighWater(); p++ {
		if _, err := image.ReadPage(p, &page); err != nil {
			return err
		}
		for i, folded := range page {
			ordinal := p*indirection.PageSlots + uint64(i)
			if scanned := seen[ordinal]; scanned != folded {
				invariants.Fail("checkpoint %d, table %s, row %d: fold says %v, scan says %v", d.Number, t.Name(), ordinal, folded, scanned)
			}
			delete(seen, ordinal)
			d.account(counted, folded, +1)
		}
	}
	if len(seen) > 0 {
		invariants.Fail("checkpoint %d, table %s: %d rows beyond the folded array", d.Number, t.Name(), len(seen))
	}
	return nil
}
