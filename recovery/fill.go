package recovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"
)

const (
	fillDelay = 50 * time.Millisecond // the first readers come first
	fillStep  = 1 << 20               // bytes, so that reads by others get in between
	fillPause = time.Millisecond
)

// FillCache brings the files that were mapped into the system's cache,
// until limit bytes. It is for the background: faults in the mappings read
// single pages, and without it a large database would long be slow after the
// machine has started.
func (s *State) FillCache(ctx context.Context, limit int64) error {
	if s.base == nil {
		return nil
	}
	pause(ctx, fillDelay)
	for name := range needs(s.base).Files {
		n, err := s.fillCache(ctx, name, limit)
		if limit -= n; err != nil || limit <= 0 {
			return err
		}
	}
	return nil
}

func (s *State) fillCache(ctx context.Context, name string, limit int64) (done int64, err error) {
	f, err := s.cfg.FS.OpenRead(s.path(filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) { // a checkpoint has let go of it
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	for ; err == nil && done < min(size, limit) && ctx.Err() == nil; done += fillStep {
		err = f.FillCache(done, fillStep)
		pause(ctx, fillPause)
	}
	return done, errors.Join(err, f.Close())
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
