package archtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers lists the packages from the bottom to the top. A package may import
// those of its own layer and of lower ones. "x/..." stands for x and all below
// it that is not named otherwise; "" is the root package.
func layers() [][]string {
	return [][]string{
		{"internal/fault", "internal/invariants"},
		{"index/keyenc"}, // bytes only; the row codec in internal needs it
		{"internal/..."},
		{"rowid"},
		{"logstream/..."},
		{"indirection/..."},
		{"index/..."},
		{"chainindex/...", "mirrorindex/...", "iacow/..."},
		{"txn/..."},
		{"gc/..."},
		{"recovery/..."},
		{""},
		{"bench/...", "cmd/..."},
	}
}

// top is the layer of the programs; what is below is the library.
func top() int { return len(layers()) - 1 }

// layerOf returns the layer whose pattern fits a package best, -1 if none does.
func layerOf(dir string) int {
	best, layer := -1, -1
	for i, patterns := range layers() {
		for _, p := range patterns {
			base, tree := strings.CutSuffix(p, "/...")
			if dir == base || tree && strings.HasPrefix(dir, base+"/") {
				if len(base) > best {
					best, layer = len(base), i
				}
			}
		}
	}
	return layer
}

// testOnly are the packages that serve tests: nothing else may import them, and
// they may import what only tests should.
func testOnly(dir string) bool { return strings.HasSuffix(dir, "test") }

// dependencies are the modules that the library may use. The programs may use
// others, tests testify.
func dependencies() []string {
	return []string{"github.com/google/btree", "github.com/cespare/xxhash/v2", "golang.org/x/sys"}
}

func TestEveryPackageHasALayer(t *testing.T) {
	for _, s := range sources(t) {
		require.NotEqual(t, -1, layerOf(s.dir), "package %q is in no layer: decide where it stands", s.dir)
	}
}

func TestImportsPointDownward(t *testing.T) {
	for _, s := range sources(t) {
		for _, complaint := range wrongImports(s) {
			t.Error(complaint)
		}
	}
}

// wrongImports complains about the imports of one file. Those of tests are
// free: a test may need a higher layer to provoke something in a lower one.
func wrongImports(s source) []string {
	if s.test {
		return nil
	}
	var complaints []string
	for _, i := range s.imports() {
		if reason := wrongImport(s.dir, i.path); reason != "" {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", s.path, i.path, reason))
		}
	}
	return complaints
}

func wrongImport(dir, path string) string {
	if path == module || strings.HasPrefix(path, module+"/") {
		return wrongOwnImport(dir, strings.TrimPrefix(strings.TrimPrefix(path, module), "/"))
	}
	return wrongForeignImport(dir, path)
}

func wrongOwnImport(dir, imported string) string {
	switch {
	case testOnly(imported) && !testOnly(dir):
		return "it serves tests"
	case layerOf(imported) > layerOf(dir):
		return "it stands higher"
	}
	return ""
}

func wrongForeignImport(dir, path string) string {
	switch {
	case layerOf(dir) == top(), testOnly(dir):
		return ""
	case path == "testing":
		return "it belongs to tests"
	case path == "log":
		return "the library logs through the slog.Logger it is given"
	case !strings.Contains(path, "."):
		return "" // the standard library
	}
	for _, m := range dependencies() {
		if path == m || strings.HasPrefix(path, m+"/") {
			return ""
		}
	}
	return "the library does not depend on it"
}

func TestLayerOf(t *testing.T) {
	for _, order := range []struct{ lower, higher string }{
		{"internal/fault", "index/keyenc"},
		{"index/keyenc", "internal/schema"},
		{"internal/vfs/errorfs", "rowid"},
		{"rowid", "logstream"},
		{"logstream", "indirection"},
		{"indirection", "index"},
		{"index/rebuild", "chainindex"},
		{"iacow", "txn"},
		{"txn", "gc"},
		{"gc", "recovery"},
		{"recovery", ""},
		{"", "bench"},
		{"", "cmd/rekindle"},
	} {
		require.Less(t, layerOf(order.lower), layerOf(order.higher), "%+v", order)
	}
	require.Equal(t, layerOf("index"), layerOf("index/btree"))
	require.Equal(t, -1, layerOf("unheard/of"))
	require.Equal(t, -1, layerOf("txnx"))
}

func TestWrongImportsAreSeen(t *testing.T) {
	own := func(dir string) string { return strings.TrimSuffix(module+"/"+dir, "/") }
	for _, c := range []struct {
		path, imported string
		wrong          bool
	}{
		{"rowid/a.go", own("internal/fault"), false},
		{"rowid/a.go", own("logstream"), true},
		{"rowid/a_test.go", own("logstream"), false},
		{"internal/schema/a.go", own("index/keyenc"), false},
		{"internal/schema/a.go", own("index"), true},
		{"internal/fault/a.go", own("internal/vfs"), true},
		{"index/btree/a.go", own("index"), false},
		{"index/a.go", own("index/indextest"), true},
		{"index/indextest/a.go", own("internal/vfs"), false},
		{"gc/a.go", own("txn"), false},
		{"txn/a.go", own("gc"), true},
		{"recovery/a.go", own(""), true},
		{"cmd/rekindle/a.go", own(""), false},
		{"db.go", own("recovery"), false},
		{"db.go", own("bench"), true},
		{"db.go", "golang.org/x/sys/unix", false},
		{"db.go", "golang.org/x/sysx", true},
		{"db.go", "github.com/spf13/cobra", true},
		{"cmd/rekindle/a.go", "github.com/spf13/cobra", false},
		{"db.go", "testing", true},
		{"index/indextest/a.go", "testing", false},
		{"db.go", "log", true},
		{"db.go", "log/slog", false},
	} {
		s := parse(t, c.path, fmt.Appendf(nil, "package p\nimport %q\n", c.imported))
		require.Equal(t, c.wrong, len(wrongImports(s)) > 0, "%+v", c)
	}
}
