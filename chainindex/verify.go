package chainindex

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// The verifier reads at some 50 MB/s, beside the work of the index, and by
// reads, so that the process does not come to hold all of the files. It begins
// late, so that it does not disturb the first reads.
const (
	verifyStep  = 1 << 18 // bytes read at once; a multiple of the size of nodes
	verifyPause = 5 * time.Millisecond
	verifyDelay = 500 * time.Millisecond
)

// startVerifier checks all files of a chain that was opened. What it finds is
// logged; readers find it themselves, when they come there.
func (x *Index) startVerifier() {
	ctx, cancel := context.WithCancel(context.Background())
	x.stop = cancel
	files := x.chain.Load().files()
	for _, l := range files {
		l.retain()
	}
	x.background.Go(func() {
		ended := sleep(ctx, verifyDelay)
		for _, l := range files {
			if ended == nil {
				x.verifyLayer(ctx, l)
				ended = ctx.Err()
			}
			x.release(l)
		}
	})
}

func (x *Index) verifyLayer(ctx context.Context, l *layer) {
	err := x.verify(ctx, l.file, verifyPause)
	if err != nil && ctx.Err() == nil && x.inUse(l) {
		x.spec.Logger.Error("index file is damaged", "index", x.spec.Name, "error", err)
	}
}

// inUse says whether a layer is in the chain still. Files that are not may have
// been deleted.
func (x *Index) inUse(l *layer) bool { return slices.Contains(x.chain.Load().layers, l) }

// verify reads a file from start to end, with pauses.
func (x *Index) verify(ctx context.Context, f *mappedFile, pause time.Duration) (err error) {
	file, err := x.spec.FS.OpenRead(f.info.Name)
	if err != nil {
		return missing(f.info.Name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var sum xxhash.Digest
	sum.Reset()
	words := make([]uint64, verifyStep/8) // nodes are to be aligned
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), verifyStep)
	for at := int64(0); at < f.info.Size; at += verifyStep {
		part := buf[:min(verifyStep, f.info.Size-at)]
		if err := readFull(file, part, at); err != nil {
			return err
		}
		sum.Write(part) // never fails
		if err := f.checkPart(part, at); err != nil {
			f.damaged.Store(true)
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	if sum.Sum64() != f.info.Sum {
		f.damaged.Store(true)
		return fault.Corrupt(f.info.Name, 0, f.info.Size, "checksum of the file is %#x, should be %#x", sum.Sum64(), f.info.Sum)
	}
	return nil
}

func readFull(f vfs.File, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fault.Corrupt(f.Name(), offset, int64(len(b)), "file ends after %d bytes", offset+int64(n))
	}
	return err
}

// checkPart checks the nodes in a part of the file.
func (f *mappedFile) checkPart(part []byte, at int64) error {
	for ; len(part) >= nodeSize; part, at = part[nodeSize:], at+nodeSize {
		if at < headerSize || at >= f.info.Size-footerSize {
			continue
		}
		id := btree.NodeID(at/nodeSize) + 1
		if at == f.footer.offset(rootID) {
			id = rootID
		}
		if err := f.checkNode(id, part[:nodeSize]); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

var _ = [1]struct{}{}[verifyStep%nodeSize]
