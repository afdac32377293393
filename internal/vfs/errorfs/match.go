package errorfs

import (
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// Match selects operations. OnNth, FromNth and Probability have state: they
// count the operations that they are asked about, so in All they belong behind
// the matches that narrow those down.
type Match func(op vfs.Op) bool

// Always selects every operation.
func Always(vfs.Op) bool { return true }

// Mutating selects what changes the file system or its durable state.
func Mutating(op vfs.Op) bool { return op.Kind.Mutates() }

// Kind selects operations by kind.
func Kind(kinds ...vfs.Kind) Match {
	return func(op vfs.Op) bool { return slices.Contains(kinds, op.Kind) }
}

// PathGlob selects operations by the path, in the syntax of path.Match: a
// pattern of k components is compared with the last k of the path, of either
// path of a rename.
func PathGlob(pattern string) Match {
	if _, err := path.Match(pattern, ""); err != nil {
		invariants.Fail("pattern %q: %v", pattern, err)
	}
	depth := strings.Count(pattern, "/") + 1
	return func(op vfs.Op) bool {
		return globMatch(pattern, depth, op.Path) || op.Kind == vfs.OpRename && globMatch(pattern, depth, op.To)
	}
}

func globMatch(pattern string, depth int, name string) bool {
	parts := strings.Split(filepath.ToSlash(name), "/")
	tail := strings.Join(parts[max(0, len(parts)-depth):], "/")
	ok, err := path.Match(pattern, tail)
	return ok && err == nil
}

// OnNth selects the n-th operation only, counted from 1.
func OnNth(n int) Match { return counted(func(i int64) bool { return i == int64(n) }) }

// FromNth selects the n-th operation, counted from 1, and all later ones, like
// a disk that stays full.
func FromNth(n int) Match { return counted(func(i int64) bool { return i >= int64(n) }) }

func counted(selects func(i int64) bool) Match {
	var count atomic.Int64
	return func(vfs.Op) bool { return selects(count.Add(1)) }
}

// Probability selects operations at random; the seed fixes which.
func Probability(p float64, seed uint64) Match {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(vfs.Op) bool {
		mu.Lock()
		defer mu.Unlock()
		return rng.Float64() < p
	}
}

// All selects what every part selects. Parts behind one that does not select
// are not asked.
func All(parts ...Match) Match {
	return func(op vfs.Op) bool {
		for _, part := range parts {
			if !part(op) {
				return false
			}
		}
		return true
	}
}

// Any selects what some part selects. Parts behind that are not asked.
func Any(parts ...Match) Match {
	return func(op vfs.Op) bool {
		return slices.ContainsFunc(parts, func(part Match) bool { return part(op) })
	}
}

// Not selects what m does not.
func Not(m Match) Match { return func(op vfs.Op) bool { return !m(op) } }
