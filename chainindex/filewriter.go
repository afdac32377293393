package chainindex

import (
	"context"
	"errors"
	"runtime"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/rowid"
)

// pour gives the entries of layers that do not change, merged, to add; with
// tombstones unless there is nothing older that they apply to. It returns how
// many entries and tombstones there were. Nodes of files are checked anew: what was
// read from them long ago, and damaged since, must not get a new checksum.
func pour(ctx context.Context, h *epoch.Handle, layers []*layer, oldest bool, add func(key []byte, place rowid.ID) error) (live, dead int64, err error) {
	for _, l := range layers {
		if l.file != nil {
			l.file.checked.reset()
		}
	}
	var m merge
	if err := m.beginBulk(h, layers); err != nil {
		return 0, 0, err
	}
	for n := 0; ; n++ {
		if n%bulkFill == 0 {
			if err := ctx.Err(); err != nil {
				return live, dead, err
			}
			runtime.Gosched() // the foreground comes first
		}
		isLive, ok, err := m.next()
		switch {
		case err != nil || !ok:
			return live, dead, err
		case isLive:
			live++
			err = add(m.key, livePlace(m.ordinal))
		case !oldest:
			dead++
			err = add(m.key, deadPlace(m.ordinal))
		}
		if err != nil {
			return live, dead, err
		}
	}
}

// writeFile makes the file of a checkpoint: layers, merged, over the files that
// are older, if there are any.
func (x *Index) writeFile(ctx context.Context, checkpoint uint64, create func(ext string) (vfs.File, error), layers, older []*layer) (index.FileInfo, error) {
	f, err := create(extension)
	if err != nil {
		return index.FileInfo{}, err
	}
	w := fileWriter{spec: &x.spec, h: x.checkpointHandle(), id: identityOf(&x.spec, checkpoint), out: vfs.NewPacedWriter(f, stepFor(layers))}
	if len(older) > 0 {
		next := older[0].file.info
		w.footer.older, w.footer.olderSum = next.Checkpoint, next.Sum
	}
	if err := errors.Join(w.write(ctx, layers), f.Close()); err != nil {
		return index.FileInfo{}, err
	}
	info := index.FileInfo{Name: f.Name(), Size: w.out.Size(), Sum: w.out.Sum64(), Checkpoint: checkpoint}
	return info, mapfile.Check(ctx, x.spec.FS, info.Name, info.Size, info.Sum)
}

// stepFor is the step for writing layers: small for small ones, for its buffer.
func stepFor(layers []*layer) int {
	const entrySize = 32 // bytes, or so
	return int(min(nodeSize+entrySize*totalSize(layers), vfs.MaxPacedStep))
}

// fileWriter writes one file from start to end.
type fileWriter struct {
	spec   *index.Spec
	h      *epoch.Handle
	id     identity
	out    *vfs.PacedWriter
	footer footer
}

func (w *fileWriter) write(ctx context.Context, layers []*layer) error {
	if _, err := w.out.Write(w.id.appendHeader(nil)); err != nil {
		return err
	}
	if err := w.writeNodes(ctx, layers); err != nil {
		return err
	}
	if _, err := w.out.Write(w.footer.append(nil, w.id.seed(partFooter))); err != nil {
		return err
	}
	return w.out.Finish()
}

func (w *fileWriter) writeNodes(ctx context.Context, layers []*layer) error {
	nodes := &nodeWriter{arena: w.spec.Arena, out: w.out, seed: w.id.seed(partNode)}
	defer nodes.close()
	config := TreeConfig(w.spec)
	config.Store, config.Shard = nodes, arena.Checkpoint.Shard(0)
	b, err := btree.NewBuilder(config, 1)
	if err != nil {
		return err
	}
	live, dead, err := pour(ctx, w.h, layers, w.footer.older == 0, b.Add)
	if err != nil {
		return err
	}
	if _, err := b.Finish(); err != nil {
		return err
	}
	w.footer.nodes, w.footer.entries, w.footer.tombstones = uint64(nodes.last), uint64(live), uint64(dead)
	return nodes.finish()
}
