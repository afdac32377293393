package chainindex

import (
	"sync"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/rowid"
)

// work is the memory of one operation, kept for the next one.
type work struct {
	bounds []byte // key and, behind it, a zero byte: the least key above it
	cursor index.Cursor
	batch  index.Batch
	places []rowid.ID
	ends   []int
	unique headChecker
	merge  merge
}

// workList lends working memory.
type workList struct{ pool sync.Pool }

func (l *workList) get(key []byte) *work {
	w, ok := l.pool.Get().(*work)
	if !ok {
		w = new(work)
	}
	w.setKey(key)
	return w
}

// setKey copies the key that the operation is about.
func (w *work) setKey(key []byte) { w.bounds = append(append(w.bounds[:0], key...), 0) }

func (l *workList) put(w *work) {
	w.unique = headChecker{}
	w.merge.letGo()
	l.pool.Put(w)
}

func (w *work) key() []byte { return w.bounds[:len(w.bounds)-1] }

// onlyKey is the range with the one key.
func (w *work) onlyKey() index.Range { return index.Range{Lo: w.key(), Hi: w.bounds} }
