package iacow

import (
	"errors"
	"maps"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
	"github.com/rekindledb/rekindle/internal/vfs/errorfs"
)

// TestModel lives through many checkpoints, of which some are abandoned at any
// point or fail, and restarts. After each step the index, and every checkpoint
// that should be usable, has what the model has.
func TestModel(t *testing.T) {
	for _, keys := range keySpaces {
		t.Run(keys.name, func(t *testing.T) {
			r := newRig(t)
			r.shrink = true
			broken := false
			r.spec.FS = errorfs.Wrap(r.fs, errorfs.Func(func(op vfs.Op) error {
				if broken && op.Kind != vfs.OpClose && r.rnd.IntN(6) == 0 {
					return syscall.EIO
				}
				return nil
			}))
			r.x.spec.FS = r.spec.FS
			for range effort(60) {
				r.change(r.rnd.IntN(keys.wanted/4), keys.wanted, keys.make)
				switch step := r.rnd.IntN(10); {
				case step < 5:
					r.publish()
				case step < 6:
					r.begin().Abandon()
				case step < 7:
					c := r.begin()
					r.change(20, keys.wanted, keys.make)
					r.write(c)
					c.Abandon()
					r.letGo()
				case step < 8:
					broken = true
					r.tryPublish()
					broken = false
				case step < 9:
					c := r.begin()
					model := maps.Clone(r.model)
					r.change(50, keys.wanted, keys.make)
					files := r.write(c)
					r.change(50, keys.wanted, keys.make)
					r.published(c, files, model)
				case len(r.kept) > 0:
					r.reopen()
				}
				r.check()
				r.checkKept()
			}
		})
	}
}

// tryPublish takes a checkpoint that may fail.
func (r *rig) tryPublish() {
	c := r.begin()
	model := maps.Clone(r.model)
	files, err := c.Write(r.t.Context(), r.create(r.number))
	if err != nil {
		require.True(r.t, errors.Is(err, errorfs.ErrInjected), "%v", err)
		c.Abandon()
		r.letGo()
		return
	}
	r.published(c, files, model)
}
