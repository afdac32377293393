package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rekindledb/rekindle"

// source is one parsed Go file of the module. Files of all systems and build
// tags are looked at, not only those of this build.
type source struct {
	path string // from the module's root, with slashes
	dir  string // its package: "" is the root package
	test bool   // *_test.go
	fset *token.FileSet
	file *ast.File
}

// sources parses the module, without the modules nested in it.
func sources(t *testing.T) []source {
	var all []source
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && foreign(path, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, parse(t, filepath.ToSlash(name), text))
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// foreign tells directories that do not belong to the module.
func foreign(path, name string) bool {
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

func parse(t *testing.T, path string, text []byte) source {
	s := source{path: path, test: strings.HasSuffix(path, "_test.go"), fset: token.NewFileSet()}
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		s.dir = path[:i]
	}
	var err error
	s.file, err = parser.ParseFile(s.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return s
}

// imported is one import: the path and the name that the file has for it.
type imported struct{ name, path string }

func (s source) imports() []imported {
	var all []imported
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // not reached: the parser accepted it
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all = append(all, imported{name, path})
	}
	return all
}

// line returns the line of a position.
func (s source) line(pos token.Pos) int { return s.fset.Position(pos).Line }
