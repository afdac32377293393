package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestAliasesNameTheirFields: go doc shows nothing of the struct behind an alias,
// so the comment of one in the root package names its fields.
func TestAliasesNameTheirFields(t *testing.T) {
	all := sources(t)
	aliases := 0
	for _, s := range all {
		if s.dir != "" || s.test {
			continue
		}
		for _, a := range aliasesIn(s) {
			aliases++
			require.Empty(t, unnamedFields(all, a), "%s: the comment of %s", s.path, a.name)
		}
	}
	require.NotZero(t, aliases)
}

// alias is a type that is another package's.
type alias struct{ name, comment, dir, target string }

func aliasesIn(s source) (all []alias) {
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			typ, ok := spec.(*ast.TypeSpec)
			if !ok || !typ.Assign.IsValid() {
				continue
			}
			a := alias{name: typ.Name.Name, comment: group.Doc.Text() + typ.Doc.Text()}
			if a.dir, a.target, ok = targetOf(s, typ.Type); ok {
				all = append(all, a)
			}
		}
	}
	return all
}

// targetOf returns the package of the module and the name in it that a type
// expression selects.
func targetOf(s source, expr ast.Expr) (dir, name string, ok bool) {
	if generic, ok := expr.(*ast.IndexExpr); ok {
		expr = generic.X
	}
	selected, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return "", "", false
	}
	for _, i := range s.imports() {
		if ast.Unparen(selected.X).(*ast.Ident).Name == i.name {
			dir, ok = strings.CutPrefix(i.path, module+"/")
			return dir, selected.Sel.Name, ok
		}
	}
	return "", "", false
}

// unnamedFields returns the exported fields of the alias's struct that its comment
// has no word for.
func unnamedFields(all []source, a alias) (missing []string) {
	words := strings.FieldsFunc(a.comment, func(r rune) bool { return !unicode.IsLetter(r) })
	for _, name := range fieldsOf(all, a.dir, a.target) {
		if ast.IsExported(name) && !slices.Contains(words, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// fieldsOf returns the names of the fields of a type, none if it is no struct.
func fieldsOf(all []source, dir, typeName string) (names []string) {
	for _, s := range all {
		if s.dir != dir || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if typ, ok := n.(*ast.TypeSpec); ok && typ.Name.Name == typeName {
				names = append(names, structFields(typ.Type)...)
			}
			return true
		})
	}
	return names
}

func structFields(expr ast.Expr) (names []string) {
	if s, ok := expr.(*ast.StructType); ok {
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func TestUnnamedFieldsAreSeen(t *testing.T) {
	all := []source{
		parse(t, "alias.go", []byte(`package rekindle
import "`+path.Join(module, "inner")+`"
// Point is a point with an X.
type Point[T any] = inner.Point[T]
`)),
		parse(t, "inner/point.go", []byte("package inner\ntype Point[T any] struct { X, Y, z T }\n")),
	}
	found := aliasesIn(all[0])
	require.Len(t, found, 1)
	require.Equal(t, "[Y]", fmt.Sprint(unnamedFields(all, found[0])))
}
