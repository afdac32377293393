package chainindex

import (
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// Remove takes the entry out of the head and, if an older layer has it, puts a
// tombstone there. Files are looked at before the key is latched, as by Insert.
func (x *Index) Remove(h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	checkRow(&x.spec, row)
	w := x.works.get(key)
	defer x.works.put(w)
	for {
		c := x.chain.Load()
		older, err := w.newest(h, c.files(), row.Ordinal())
		if err != nil {
			return false, err
		}
		if removed, done, err := x.tryRemove(h, w, c, row, older, dead); done {
			return removed, err
		}
	}
}

// newest returns what the newest of the layers that knows the entry says.
func (w *work) newest(h *epoch.Handle, layers []*layer, ordinal uint64) (finding, error) {
	for _, l := range layers {
		f, err := l.probe(h, w, ordinal)
		if f != 0 || err != nil {
			return f, err
		}
	}
	return 0, nil
}

// tryRemove is the part of Remove that is done with the key latched; inFiles
// is what the files of c say about the entry.
func (x *Index) tryRemove(h *epoch.Handle, w *work, c *chain, row rowid.ID, inFiles finding, dead func() bool) (removed, done bool, err error) {
	latch := x.latches.of(w.key())
	latch.Lock()
	defer latch.Unlock()
	now := x.chain.Load()
	if !now.sameFiles(c) {
		return false, false, nil
	}
	older, err := w.newest(h, now.frozen(), row.Ordinal())
	if err != nil {
		return false, true, err
	}
	if older == 0 {
		older = inFiles
	}
	here, err := now.head().probe(h, w, row.Ordinal())
	if err != nil {
		return false, true, err
	}
	if present := here&isLive != 0 || here == 0 && older&isLive != 0; !present || !dead() {
		return false, true, nil
	}
	err = x.leave(h, now.head(), w.key(), row, here, older)
	return err == nil, true, err
}

// leave removes an entry with the key latched. The tombstone comes first: it
// has no effect until the entry itself is gone, and it may fail.
func (x *Index) leave(h *epoch.Handle, head *layer, key []byte, row rowid.ID, here, older finding) error {
	if older&isLive != 0 && here&isDead == 0 {
		if err := head.tree.Insert(h, key, deadPlace(row.Ordinal()), nil); err != nil {
			return err
		}
		head.tombs.Add(1)
	}
	if here&isLive != 0 {
		if err := head.takeOut(h, key, livePlace(row.Ordinal())); err != nil {
			return err
		}
	}
	if f := x.follower.Load(); f != nil {
		return x.followRemove(h, f, key, row)
	}
	return nil
}
