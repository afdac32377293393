package chainindex

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
)

// Open maps the files of a checkpoint and puts an empty head in front of them.
// It reads the headers and footers; everything else is checked when it is first
// used, and by a verifier that reads the files in the background until Close.
// Errors: index.ErrNoCheckpoint, *fault.File, those of the file system,
// fault.ErrMemoryLimit.
func Open(ctx context.Context, spec index.Spec, files []index.FileInfo) (*Index, error) {
	if len(files) == 0 {
		return nil, index.ErrNoCheckpoint
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	layers, err := openLayers(&spec, files)
	if err != nil {
		return nil, err
	}
	x, err := newIndex(spec, layers)
	if err != nil {
		return nil, errors.Join(err, closeLayers(&spec, layers))
	}
	x.startVerifier()
	return x, nil
}

// openLayers opens the files of a chain, newest first.
func openLayers(spec *index.Spec, files []index.FileInfo) (layers []*layer, err error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b index.FileInfo) int { return cmp.Compare(b.Checkpoint, a.Checkpoint) })
	for _, info := range files {
		l, err := openLayer(spec, info)
		if err != nil {
			return nil, errors.Join(err, closeLayers(spec, layers))
		}
		layers = append(layers, l)
	}
	if err := checkLinks(layers); err != nil {
		return nil, errors.Join(err, closeLayers(spec, layers))
	}
	return layers, nil
}

// checkLinks makes sure that the files are a whole chain: each one was written
// over the next one.
func checkLinks(layers []*layer) error {
	for i, l := range layers {
		var older index.FileInfo
		if i+1 < len(layers) {
			older = layers[i+1].file.info
		}
		if f := l.file; f.footer.older != older.Checkpoint || f.footer.olderSum != older.Sum {
			return fault.Corrupt(f.info.Name, f.info.Size-footerSize, footerSize,
				"file was written over that of checkpoint %d, found with that of %d", f.footer.older, older.Checkpoint)
		}
	}
	if len(layers) > maxFiles {
		return fault.Corrupt(layers[0].file.info.Name, 0, 0, "index has %d files, at most %d are allowed", len(layers), maxFiles)
	}
	return nil
}

// openLayer opens one file.
func openLayer(spec *index.Spec, info index.FileInfo) (*layer, error) {
	f, err := openFile(spec, info)
	if err != nil {
		return nil, err
	}
	config := TreeConfig(spec)
	config.Store = f
	entries := int64(f.footer.entries + f.footer.tombstones)
	l := newLayer(btree.Open(config, rootID, entries, int64(f.footer.nodes)), int64(f.footer.tombstones))
	l.file = f
	return l, nil
}

func closeLayers(spec *index.Spec, layers []*layer) error {
	var errs []error
	for _, l := range layers {
		errs = append(errs, l.close(spec))
	}
	return errors.Join(errs...)
}
