package iacow

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// powerCut is a disk as a power cut leaves it, and the checkpoints that a
// manifest on it would name.
type powerCut struct {
	disk *vfs.Mem
	kept []checkpoint
}

// TestPowerCuts cuts the power before every operation of checkpoints on files.
// Every checkpoint that was published by then can be opened and has what it
// should have.
func TestPowerCuts(t *testing.T) {
	for _, keys := range keySpaces {
		t.Run(keys.name, func(t *testing.T) {
			r := newRig(t)
			var cuts []powerCut
			cut := func(mode vfs.CrashMode) {
				cuts = append(cuts, powerCut{r.fs.CrashClone(r.rnd, mode), slices.Clone(r.kept)})
			}
			r.fs.OnOp(func(int, vfs.Op) error {
				cut(vfs.Strict)
				cut(vfs.Random)
				return nil
			})
			for n := range effort(20) {
				r.change(r.rnd.IntN(keys.wanted/3), keys.wanted/2, keys.make)
				c := r.begin()
				model := maps.Clone(r.model)
				files := r.write(c)
				require.NoError(t, r.fs.SyncDir("/db"))
				if n%5 == 4 {
					c.Abandon()
					r.letGo()
					continue
				}
				r.published(c, files, model)
				cut(vfs.Strict)
			}
			r.fs.OnOp(nil)
			for _, c := range cuts {
				r.checkCut(c)
			}
		})
	}
}

func (r *rig) checkCut(c powerCut) {
	r.t.Helper()
	spec := r.spec
	spec.FS = c.disk
	for _, k := range c.kept {
		ix, err := Strategy{}.Open(r.t.Context(), spec, k.files)
		require.NoError(r.t, err)
		x := ix.(*Index)
		r.equals(x, k.model)
		require.NoError(r.t, x.Close())
	}
}
