//go:build !race

package rekindle_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var openCloseRounds = flag.Int("leaks.rounds", 12, "rounds of TestNothingLeft for each strategy")

// held is what a process has of the system, and of the Go runtime.
type held struct{ descriptors, mappings, goroutines int }

// holding counts, of the mappings only those of files and large anonymous ones:
// the Go heap has its own.
func holding(t *testing.T, dir string) (h held) {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	h.descriptors = len(fds)
	eachLine(t, "/proc/self/maps", func(line string) {
		var from, to uint64
		_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
		require.NoError(t, err)
		if strings.Contains(line, dir) {
			h.mappings++
		}
	})
	h.goroutines = runtime.NumGoroutine()
	return h
}

// TestNothingLeft opens and closes a database again and again, in every way, and
// nothing of the system stays behind: no descriptor, mapping, goroutine or arena.
func TestNothingLeft(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, strategy := range rekindle.IndexStrategies() {
		dir := filepath.Join(t.TempDir(), "db")
		var before held
		var memory int64
		for round := range *openCloseRounds {
			liveOnce(t, dir, strategy, round)
			if round == 2 { // by then what is made once is there
				before, memory = holding(t, dir), residentBytes(t)
			}
		}
		require.Equal(t, before, holding(t, dir), strategy)
		require.Zero(t, before.mappings)
		require.Less(t, residentBytes(t)-memory, int64(32<<20), "memory grows with each life: %s", strategy)
	}
}

// liveOnce ends a life in one of the ways that there are.
func liveOnce(t *testing.T, dir, strategy string, round int) {
	h := openHandles(t, vfs.OS(), dir, rekindle.Options{IndexStrategy: strategy})
	update(t, h.db, func(tx *rekindle.Tx) {
		for h.id = range int64(500) {
			require.NoError(t, h.items.Upsert(tx, h.item()))
		}
	})
	require.NoError(t, h.db.Checkpoint(h.ctx))
	update(t, h.db, func(tx *rekindle.Tx) { require.NoError(t, h.items.Upsert(tx, h.item())) })
	switch round % 3 {
	case 0:
		require.NoError(t, h.db.Close(h.ctx))
	case 1: // with a transaction open, and no time
		require.NoError(t, h.begin(true))
		require.NoError(t, h.items.Upsert(h.tx, h.item()))
		require.ErrorIs(t, h.db.Close(ended(t)), rekindle.ErrOpenTransactions)
	case 2: // and refused, and read-only
		_, err := rekindle.Open(h.ctx, dir, nil)
		require.ErrorIs(t, err, rekindle.ErrLocked)
		require.NoError(t, h.db.Close(h.ctx))
		_, err = rekindle.Open(h.ctx, dir, &rekindle.Options{LogStreams: 7})
		require.ErrorIs(t, err, rekindle.ErrInvalidOptions)
		h = openHandles(t, vfs.OS(), dir, rekindle.Options{ReadOnly: true})
		require.Len(t, allItems(t, h.db, h.items), 500)
		require.NoError(t, h.db.Close(h.ctx))
	}
}

func residentBytes(t *testing.T) (n int64) {
	runtime.GC()
	eachLine(t, "/proc/self/status", func(line string) {
		var kilobytes int64
		if found, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); found == 1 {
			n = kilobytes << 10
		}
	})
	require.NotZero(t, n)
	return n
}

// TestReadOnlyFiles looks at a crashed database on the real file system: no file
// changes, in content, size, mode or time of change, none comes and none goes.
func TestReadOnlyFiles(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		for _, locked := range []bool{true, false} {
			dir := t.TempDir()
			for name, content := range disk.Dump() {
				path := filepath.Join(dir, name)
				if strings.HasSuffix(name, "/") {
					require.NoError(t, os.MkdirAll(path, 0o755))
				} else if locked || !strings.HasSuffix(name, "LOCK") {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
					require.NoError(t, os.WriteFile(path, content, 0o444))
				}
			}
			before := describe(t, dir)
			h := openHandles(t, vfs.OS(), filepath.Join(dir, "db"), rekindle.Options{ReadOnly: true})
			require.Equal(t, want, allItems(t, h.db, h.items))
			require.NoError(t, h.db.Close(h.ctx))
			require.Equal(t, before, describe(t, dir))
		}
	}
}

// describe says of every file and directory what a look at it must not change.
func describe(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		text := fmt.Sprint(info.Mode(), st.Ino, st.Mtim, st.Ctim)
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(content)
		}
		all[path] = text
		return nil
	}))
	return all
}

// childLock tells a process of this test binary which database to open.
const childLock = "REKINDLE_TEST_LOCK"

// TestChildHolds is the other process of TestOtherOpeners: it opens the database,
// starts a process of its own that outlives it, and says so.
func TestChildHolds(t *testing.T) {
	dir := os.Getenv(childLock)
	if dir == "" {
		t.Skip("runs in a process of another test")
	}
	_, err := rekindle.Open(t.Context(), dir, nil)
	require.NoError(t, err)
	heir := exec.Command("sleep", "30")
	require.NoError(t, heir.Start())
	fmt.Println("\nholds", heir.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test does
}

// TestOtherOpeners: while a process has a database open all others are refused at
// once, by whatever path they come; when it is killed they are not, though a
// process that it started lives on.
func TestOtherOpeners(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "db")
	t.Chdir(home)
	require.NoError(t, os.Symlink("db", "link"))
	require.NoError(t, os.Symlink(home, "home"))
	for range 2 {
		holder := exec.Command(os.Args[0], "-test.run", "^TestChildHolds$")
		holder.Env = append(os.Environ(), childLock+"="+dir)
		_, err := holder.StdinPipe()
		require.NoError(t, err)
		out, err := holder.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, holder.Start())
		var heir int
		for lines := bufio.NewScanner(out); heir == 0; {
			require.True(t, lines.Scan(), "the other process does not open it")
			_, _ = fmt.Sscanf(lines.Text(), "holds %d", &heir)
		}
		for _, path := range []string{dir, "db", "./db/", "link", "home/db", "../" + filepath.Base(home) + "/db/../db"} {
			for _, o := range []rekindle.Options{{}, {ReadOnly: true}} {
				_, err := rekindle.Open(t.Context(), path, &o)
				require.ErrorIs(t, err, rekindle.ErrLocked, path)
			}
			require.ErrorIs(t, rekindle.Convert(t.Context(), path, "rebuild", nil), rekindle.ErrLocked, path)
		}
		require.NoError(t, holder.Process.Kill())
		require.Error(t, holder.Wait())
		require.NoError(t, syscall.Kill(heir, 0), "lives on")
		db, err := rekindle.Open(t.Context(), "link", nil)
		require.NoError(t, err)
		require.NoError(t, db.Close(t.Context()))
		require.NoError(t, syscall.Kill(heir, syscall.SIGKILL))
	}
}
