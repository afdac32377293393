package archtest

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// panicMark excuses a panic on its own line or the next one; the reason
// follows. It is for passing on what was recovered and is not ours.
const panicMark = "//lint:panic"

func TestHabits(t *testing.T) {
	for _, s := range sources(t) {
		for _, complaint := range badHabits(s) {
			t.Error(complaint)
		}
	}
}

// badHabits complains about what the code outside tests must not do. Programs
// may print, sleep and touch files.
func badHabits(s source) []string {
	if s.test || ast.IsGenerated(s.file) {
		return nil
	}
	l := linter{source: s, library: layerOf(s.dir) != top(), packages: map[string]string{}, comments: map[int]string{}}
	l.prepare()
	ast.Inspect(s.file, l.visit)
	return l.complaints
}

// linter looks at one file.
type linter struct {
	source
	packages   map[string]string // import paths by the file's names for them
	library    bool
	comments   map[int]string // by the line that the comment ends on
	complaints []string
}

func (l *linter) prepare() {
	for _, i := range l.imports() {
		l.packages[i.name] = i.path
	}
	for _, group := range l.file.Comments {
		for _, c := range group.List {
			l.comments[l.line(c.End())] = c.Text
		}
	}
}

func (l *linter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			l.complain(n, "init runs behind everybody's back")
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" {
			l.checkPanic(n)
		}
	case *ast.SelectorExpr:
		if id, ok := n.X.(*ast.Ident); ok && l.library {
			l.checkUse(n, l.packages[id.Name], n.Sel.Name)
		}
	}
	return true
}

func (l *linter) checkPanic(n ast.Node) {
	if l.dir == "internal/invariants" {
		return
	}
	for _, comment := range l.commentsAt(n) {
		if reason, marked := strings.CutPrefix(comment, panicMark+" "); marked && strings.TrimSpace(reason) != "" {
			return
		}
	}
	l.complain(n, "panic outside internal/invariants; return an error")
}

// checkUse looks at a name that the file takes from a package.
func (l *linter) checkUse(n ast.Node, path, name string) {
	switch {
	case path == "fmt" && strings.HasPrefix(name, "Print"):
		l.complain(n, "the library does not print")
	case path == "time" && name == "Sleep" && len(l.commentsAt(n)) == 0:
		l.complain(n, "time.Sleep without a comment that says why")
	case l.dir != "internal/vfs" && touchesFiles(path, name):
		l.complain(n, fmt.Sprintf("%s.%s goes past internal/vfs", path, name))
	}
}

// commentsAt returns the comments on the node's line and on the line before.
func (l *linter) commentsAt(n ast.Node) []string {
	var found []string
	for _, line := range []int{l.line(n.Pos()) - 1, l.line(n.Pos()), l.line(n.End())} {
		if text, ok := l.comments[line]; ok {
			found = append(found, text)
		}
	}
	return found
}

func (l *linter) complain(n ast.Node, what string) {
	l.complaints = append(l.complaints, fmt.Sprintf("%s:%d: %s", l.path, l.line(n.Pos()), what))
}

// touchesFiles tells the functions of the standard library that reach the file
// system.
func touchesFiles(path, name string) bool {
	switch path {
	case "io/ioutil":
		return true
	case "path/filepath":
		return strings.HasPrefix(name, "Walk") || name == "Glob" || name == "EvalSymlinks"
	case "os":
		for _, verb := range []string{
			"Open", "Create", "Read", "Write", "Remove", "Rename", "Mkdir", "Stat", "Lstat", "Truncate",
			"Link", "Symlink", "Chmod", "Chown", "Lchown", "Chtimes", "Chdir", "CopyFS", "DirFS", "NewFile", "SameFile",
		} {
			if strings.HasPrefix(name, verb) {
				return true
			}
		}
	}
	return false
}

func TestBadHabitsAreSeen(t *testing.T) {
	for _, c := range []struct {
		path, body string
		want       string // part of the only complaint; empty for none
	}{
		{"db.go", `func f() { panic("no") }`, "db.go:3: panic"},
		{"db.go", `func f() { panic("no") } //lint:panic because`, ""},
		{"db.go", "func f() {\n\t//lint:panic not ours\n\tpanic(1)\n}", ""},
		{"db.go", "func f() { panic(1) } //lint:panic ", "panic"},
		{"db.go", "func f() { panic(1) } // a comment", "panic"},
		{"db.go", "//lint:panic too far away\n\nfunc f() { panic(1) }", "panic"},
		{"db_test.go", `func f() { panic("no") }`, ""},
		{"cmd/rekindle/main.go", `func f() { panic("no") }`, "panic"},
		{"internal/invariants/a.go", `func f() { panic("no") }`, ""},
		{"db.go", `func f() { fmt.Println() }`, "does not print"},
		{"db.go", `func f() { fmt.Printf("") }`, "does not print"},
		{"db.go", `func f() { _ = fmt.Sprint() }`, ""},
		{"cmd/rekindle/main.go", `func f() { fmt.Println() }`, ""},
		{"db.go", `func f() { time.Sleep(1) }`, "time.Sleep"},
		{"db.go", `func f() { time.Sleep(1) } // lets the others go first`, ""},
		{"bench/a.go", `func f() { time.Sleep(1) }`, ""},
		{"db.go", `func init() {}`, "init"},
		{"db.go", `type x int; func (x) init() {}`, ""},
		{"cmd/rekindle/main.go", `func init() {}`, "init"},
		{"db.go", `func f() { _, _ = os.ReadFile("x") }`, "os.ReadFile"},
		{"db.go", `var open = os.OpenFile`, "os.OpenFile"},
		{"db.go", `func f() { _ = os.Getpid() }`, ""},
		{"db.go", `func f() { _, _ = filepath.Glob("*") }`, "filepath.Glob"},
		{"db.go", `func f() { _ = filepath.Join("a") }`, ""},
		{"internal/vfs/os.go", `func f() { _, _ = os.Open("x") }`, ""},
		{"internal/vfs/errorfs/a.go", `func f() { _, _ = os.Open("x") }`, "os.Open"},
		{"bench/a.go", `func f() { _, _ = os.Open("x") }`, ""},
	} {
		text := "package p\nimport (\"fmt\"; \"os\"; \"time\"; \"path/filepath\")\n" + c.body
		got := badHabits(parse(t, c.path, []byte(text)))
		if c.want == "" {
			require.Empty(t, got, "%+v", c)
			continue
		}
		require.Len(t, got, 1, "%+v", c)
		require.Contains(t, got[0], c.want)
	}
}

func TestGeneratedCodeIsLeftAlone(t *testing.T) {
	text := "// Code generated by a tool. DO NOT EDIT.\n\npackage p\n\nfunc init() { panic(1) }\n"
	require.Empty(t, badHabits(parse(t, "db.go", []byte(text))))
}
