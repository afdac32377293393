//go:build darwin || freebsd || linux

package rekindle_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var hostileStride = flag.Int("hostile.stride", 32, "TestHostileFiles harms every n-th of the places")

// onDisk writes a database of lived to a directory of the operating system and
// lists its files.
func onDisk(t *testing.T, disk *vfs.Mem, dir string) (files []string) {
	t.Helper()
	for name, content := range disk.Dump() {
		below := strings.TrimPrefix(name, "db/")
		path := filepath.Join(dir, below)
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))
		files = append(files, below)
	}
	return files
}

// contents reads all files below a directory; links are their targets.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			all[path] = string(content)
		}
		return nil
	}))
	return all
}

// replacements are what an attacker puts in the place of a file or a folder; twin
// is a copy of it outside of the database.
func replacements() map[string]func(path, twin string) error {
	return map[string]func(path, twin string) error{
		"directory":       func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"link":            func(path, twin string) error { return os.Symlink(twin, path) },
		"relative link":   func(path, twin string) error { return relativeLink(twin, path) },
		"dangling link":   func(path, twin string) error { return os.Symlink(twin+"-missing", path) },
		"link to itself":  func(path, _ string) error { return os.Symlink(path, path) },
		"pipe":            func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
		"socket":          listen,
		"endless device":  func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"device":          func(path, _ string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, 0x105) }, // /dev/zero of Linux
		"empty file":      func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
		"text":            func(path, _ string) error { return os.WriteFile(path, []byte("hello\n"), 0o600) },
		"huge sparse one": sparse,
	}
}

func relativeLink(twin, path string) error {
	to, err := filepath.Rel(filepath.Dir(path), twin)
	if err != nil {
		return err
	}
	return os.Symlink(to, path)
}

// listen makes a socket; its path may be too long for it, so it is made
// elsewhere.
func listen(path, _ string) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	return errors.Join(os.Rename(filepath.Join(dir, "s"), path), l.Close())
}

func sparse(path, _ string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, 1<<40)
}

// places are the files of a database and its folders.
func places(files []string) (all []string) {
	seen := map[string]bool{}
	for _, file := range files {
		for ; file != "." && !seen[file]; file = filepath.Dir(file) {
			seen[file] = true
			all = append(all, file)
		}
	}
	return all
}

// TestHostileFiles puts everything that can have a name in the place of every file
// and folder of a database. It opens with what it had, or says which file is
// wrong; it does so at once, within its directory, and in little memory.
func TestHostileFiles(t *testing.T) {
	n := 0
	all := replacements()
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		probe := places(onDisk(t, disk, t.TempDir()))
		slices.Sort(probe)
		for _, what := range slices.Sorted(maps.Keys(all)) {
			t.Run(strategy+"/"+what, func(t *testing.T) {
				for _, place := range probe {
					if n++; n%*hostileStride == 0 {
						replaced(t, disk, want, place, all[what])
					}
				}
			})
		}
	}
	t.Logf("%d places harmed", n / *hostileStride)
}

func replaced(t *testing.T, disk *vfs.Mem, want []item, place string, replace func(path, twin string) error) {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	onDisk(t, disk, dir)
	onDisk(t, disk, outside)
	before := contents(t, outside)
	path := filepath.Join(dir, place)
	require.NoError(t, os.RemoveAll(path))
	if err := replace(path, filepath.Join(outside, place)); err != nil {
		t.Skip("this cannot be made here: ", err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	allocated := memory.TotalAlloc
	within(t, place, func() { useHostile(t, dir, want, place) })
	runtime.ReadMemStats(&memory)
	require.Less(t, memory.TotalAlloc-allocated, uint64(256<<20), place)
	require.Equal(t, before, contents(t, outside), place)
}

// useHostile opens a database that may be hostile, and if that works, uses it.
func useHostile(t *testing.T, dir string, want []item, what string) {
	db, err := rekindle.Open(t.Context(), dir, &rekindle.Options{CheckpointBytes: -1})
	if err != nil {
		requireNamed(t, err, dir, what)
		return
	}
	items, err := rekindle.OpenTable[item](t.Context(), db, "items")
	require.NoError(t, err, what)
	require.Equal(t, want, allItems(t, db, items), what)
	_, err = db.CrossCheck(t.Context())
	require.NoError(t, err, what)
	db.Stats()
	for i := range int64(2) {
		update(t, db, func(tx *rekindle.Tx) {
			require.NoError(t, items.Insert(tx, &item{ID: -1 - i, Name: fmt.Sprint("n", i)}), what)
		})
		if err := db.Checkpoint(t.Context()); err != nil {
			requireNamed(t, err, dir, what)
		}
	}
	if err := db.Close(t.Context()); err != nil {
		requireNamed(t, err, dir, what)
	}
}

// requireNamed wants an error that names a file of the database.
func requireNamed(t *testing.T, err error, dir, what string) {
	t.Helper()
	var e *rekindle.FileError
	var p *fs.PathError
	switch {
	case errors.As(err, &e):
		require.True(t, strings.HasPrefix(e.Path, dir), "%s: %v", what, err)
	case errors.As(err, &p):
		require.True(t, strings.HasPrefix(p.Path, dir), "%s: %v", what, err)
		t.Logf("%s: %v", what, err)
	default:
		require.Fail(t, "no file is named", "%s: %v", what, err)
	}
}

// TestHardLinks: files that are another database's too are read like own ones,
// and no byte of them changes.
func TestHardLinks(t *testing.T) {
	for _, strategy := range rekindle.IndexStrategies() {
		disk, want := livedWith(t, strategy)
		victim, dir := t.TempDir(), filepath.Join(t.TempDir(), "db")
		for _, file := range onDisk(t, disk, victim) {
			link := filepath.Join(dir, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
			require.NoError(t, os.Link(filepath.Join(victim, file), link))
		}
		require.NoError(t, os.Link(filepath.Join(victim, "CURRENT"), filepath.Join(dir, "CURRENT.tmp")))
		require.NoError(t, os.Link(filepath.Join(victim, "CURRENT"), filepath.Join(dir, "MANIFEST-000003")))
		before := contents(t, victim)
		useHostile(t, dir, want, strategy)
		require.Equal(t, before, contents(t, victim), strategy)
		useHostile(t, victim, want, strategy)
	}
}

// TestStrayFiles: thousands of files that are none of the engine's stay and cost
// an Open little.
func TestStrayFiles(t *testing.T) {
	disk, want := livedWith(t, rekindle.IndexStrategies()[0])
	dir := t.TempDir()
	onDisk(t, disk, dir)
	const strays = 500
	names := []string{"%d", "note-%d.txt", "log/%d", "log/00-%d.log.bak", "ckpt/%d", "ckpt/tmp-%d"}
	for i := range strays {
		for _, name := range names {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf(name, i)), nil, 0o600))
		}
	}
	within(t, "Open", func() { useHostile(t, dir, want, "strays") })
	for _, name := range names {
		_, err := os.Stat(filepath.Join(dir, fmt.Sprintf(name, strays-1)))
		require.NoError(t, err, name)
	}
}
