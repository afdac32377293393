package iacow

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/fault"
)

// The verifier reads the files of an opened index once, slowly: this many bytes
// at a time, and at most that often. It starts late, so that it does not disturb
// the first reads.
const (
	verifyStep  = 128 * blockBytes
	verifyPause = 4 * time.Millisecond
	verifyDelay = 500 * time.Millisecond
)

// verifier is the background goroutine that looks for damage where no reader has
// been yet. What it finds is logged; readers find it themselves.
type verifier struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func startVerifier(spec *index.Spec, im *image) *verifier {
	ctx, cancel := context.WithCancel(context.Background())
	v := &verifier{cancel: cancel, ended: make(chan struct{})}
	checks := im.checks(spec)
	go func() {
		defer close(v.ended)
		sleep(ctx, verifyDelay)
		for _, c := range checks {
			if ctx.Err() != nil {
				return
			}
			err := c.run(ctx, func() { sleep(ctx, verifyPause) })
			if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) { // it may have been let go of
				spec.Logger.Error("index file is damaged", "index", spec.Name, "error", err)
			}
		}
	}()
	return v
}

func (v *verifier) stop() error {
	v.cancel()
	<-v.ended
	return nil
}

// sleep waits for a while or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// fileCheck reads one file from start to end.
type fileCheck struct {
	spec  *index.Spec
	info  index.FileInfo
	seed  uint64
	nodes uint32
}

func (im *image) checks(spec *index.Spec) []fileCheck {
	var list []fileCheck
	for _, f := range im.files {
		if f != nil {
			list = append(list, fileCheck{spec, f.info, f.seed, f.nodes})
		}
	}
	return list
}

// run compares the nodes with their checksums, and the whole file with the one
// that the manifest has. It calls pause between two reads.
func (c *fileCheck) run(ctx context.Context, pause func()) (err error) {
	f, err := c.spec.FS.OpenRead(c.info.Name)
	if err != nil {
		return err
	}
	defer func() { err = joinClose(err, f) }()
	var sum xxhash.Digest
	sum.Reset()
	buf := make([]byte, verifyStep)
	for at := int64(0); at < c.info.Size; at += verifyStep {
		b := buf[:min(verifyStep, c.info.Size-at)]
		if err := readFull(f, b, at); err != nil {
			return err
		}
		if err := c.nodesIn(b, uint32(at/blockBytes)); err != nil {
			return err
		}
		sum.Write(b) // never fails
		pause()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if sum.Sum64() != c.info.Sum {
		return fault.Corrupt(c.info.Name, 0, c.info.Size, "checksum of the file is %#x, should be %#x", sum.Sum64(), c.info.Sum)
	}
	return nil
}

// nodesIn checks the nodes in the blocks from first on.
func (c *fileCheck) nodesIn(b []byte, first uint32) error {
	for ; len(b) >= blockBytes; b = b[blockBytes:] {
		if image := b[:blockBytes]; first > 0 && first <= c.nodes {
			id := btree.HeaderOf(unsafePointer(image)).ID
			if reason := checkNode(c.seed, id, first, image); reason != "" {
				return fault.Corrupt(c.info.Name, int64(first)*blockBytes, blockBytes, "node %d: %s", id, reason)
			}
		}
		first++
	}
	return nil
}
