package losingfs

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle"
	"github.com/rekindledb/rekindle/bench/torture"
	"github.com/rekindledb/rekindle/internal/vfs"
)

var (
	rounds  = flag.Int("cut.rounds", 8, "rounds of TestPowerCuts; 0: as many as -cut.seconds has room for")
	seconds = flag.Float64("cut.seconds", 0, "begin no round of TestPowerCuts later than that; 0: no limit")
	seed    = flag.Uint64("cut.seed", 0, "seed of TestPowerCuts, 0 for a random one")
)

// childMode makes the test binary a child; its value says which kind. All that
// touches files on a mount is done by children: a page fault in the process that
// serves it would wait for itself.
const childMode = "REKINDLE_TEST_CHILD"

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := serve(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(mode string) error {
	args := os.Args[len(os.Args)-2:]
	if mode == "torture" {
		return torture.Serve(context.Background(), args[0], args[1], os.Stdout)
	}
	return map[string]func(fs vfs.FS, dir string) error{"write": write, "look": look}[mode](vfs.OS(), args[1])
}

// mount mounts a file system for a test, which is skipped where that cannot be.
func mount(t *testing.T, o Options) (*FS, string) {
	t.Helper()
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no FUSE here, or it is not permitted: %v", err)
	}
	require.NoError(t, device.Close())
	dir := t.TempDir()
	fs, err := Mount(dir, o)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, exec.ErrNotFound) {
		t.Skipf("mounting is not permitted and fusermount is not there: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fs.Unmount()) })
	return fs, dir
}

func run(t *testing.T, mode, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "x", dir)
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// write does what the engine does with files, and leaves some of it unsynced.
func write(fs vfs.FS, dir string) error {
	name := func(base string) string { return filepath.Join(dir, base) }
	if err := vfs.WriteFileAtomic(fs, name("synced"), bytes.Repeat([]byte("s"), 5000)); err != nil {
		return err
	}
	if err := vfs.WriteFileAtomic(fs, name("synced"), bytes.Repeat([]byte("S"), 6000)); err != nil { // over it
		return err
	}
	if err := fs.MkdirAll(name("sub")); err != nil {
		return err
	}
	f, err := fs.Create(name("unnamed")) // content durable, name not
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		return err
	}
	if err := f.Datasync(); err != nil {
		return err
	}
	g, err := fs.Open(name("synced"))
	if err != nil {
		return err
	}
	if _, err := g.WriteAt([]byte("unsynced"), 1000); err != nil {
		return err
	}
	if err := g.Truncate(7000); err != nil {
		return err
	}
	gone, err := fs.Create(name("gone"))
	if err != nil {
		return err
	}
	if err := fs.Remove(name("gone")); err != nil {
		return err
	}
	if _, err := gone.WriteAt([]byte("still there"), 0); err != nil {
		return err
	}
	size, err := gone.Size()
	if err != nil || size != int64(len("still there")) {
		return fmt.Errorf("a file without a name has %d bytes: %w", size, err)
	}
	return look(fs, dir)
}

// look lists all files, and reads them as the engine does: mapped, and by reads
// past the page cache. Runs of a byte are shortened.
func look(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		name := filepath.Join(dir, base)
		info, err := fs.Stat(name)
		if err != nil || info.Dir {
			fmt.Println(base + "/")
			continue
		}
		if err := lookAt(fs, name, info.Size); err != nil {
			return err
		}
	}
	return nil
}

func lookAt(fs vfs.FS, name string, size int64) error {
	m, err := fs.Map(name, size)
	if err != nil {
		return err
	}
	f, err := fs.OpenRead(name)
	if err != nil {
		return err
	}
	if err := f.DropCache(); err != nil {
		return err
	}
	content := make([]byte, len(m.Bytes()))
	if _, err := f.ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(content, m.Bytes()) {
		return fmt.Errorf("%s: %q is mapped, %q is read", name, m.Bytes(), content)
	}
	fmt.Println(filepath.Base(name), shortened(content))
	return errors.Join(f.Close(), m.Close())
}

func shortened(content []byte) string {
	var b strings.Builder
	for i, n := 0, 0; i < len(content); i += n {
		for n = 1; i+n < len(content) && content[i+n] == content[i]; n++ {
		}
		fmt.Fprintf(&b, "%d%q ", n, content[i])
	}
	return b.String()
}

// TestWhatAPowerCutLeaves compares the mounted file system with vfs.Mem, whose
// rules it has.
func TestWhatAPowerCutLeaves(t *testing.T) {
	fs, dir := mount(t, Options{})
	seen := run(t, "write", dir)
	require.Contains(t, seen, "sub/")
	require.Contains(t, seen, "unnamed 1'x'")
	require.Regexp(t, `(?m)^synced 1000'S' 1'u' .*'S' 1000'\\x00' $`, seen)
	require.Equal(t, seen, run(t, "look", dir))

	require.NoError(t, fs.PowerCut(nil, vfs.Kill))
	require.Equal(t, seen, run(t, "look", dir), "a killed process loses nothing")
	require.NoError(t, fs.PowerCut(nil, vfs.Strict))
	require.Equal(t, "synced 6000'S' \n", run(t, "look", dir), "what was not synced is gone, names too")
}

func TestIgnoredSync(t *testing.T) {
	fs, dir := mount(t, Options{IgnoreSync: all})
	require.Contains(t, run(t, "write", dir), "synced")
	require.NoError(t, fs.PowerCut(nil, vfs.Strict))
	require.Empty(t, run(t, "look", dir))
}

// tortured runs the kill harness with a power cut after each process.
func tortured(t *testing.T, o Options, c torture.Config) (*torture.Report, error) {
	fs, dir := mount(t, o)
	t.Setenv(childMode, "torture")
	c.Dir, c.Data = t.TempDir(), dir
	c.Executable, c.Stderr = os.Args[0], os.Stderr
	if c.Strategies == nil {
		c.Strategies = rekindle.IndexStrategies()
	}
	c.PowerCut = func(rng *rand.Rand) error {
		modes := []vfs.CrashMode{vfs.Random, vfs.Random, vfs.Random, vfs.Strict, vfs.Keep}
		return fs.PowerCut(rng, modes[rng.IntN(len(modes))])
	}
	report, err := torture.Run(t.Context(), c)
	var counts strings.Builder
	require.NoError(t, report.Write(&counts))
	t.Log("\n" + counts.String())
	return report, err
}

// TestPowerCuts: whatever a power cut leaves of what was not synced, at any moment
// of a life, nothing promised is lost.
func TestPowerCuts(t *testing.T) {
	c := torture.Config{
		Seed:        *seed,
		Rounds:      *rounds,
		Time:        time.Duration(*seconds * float64(time.Second)),
		PerDatabase: 4,
		Workloads:   torture.Workloads(),
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32())
	}
	t.Logf("seed %d", c.Seed)
	report, err := tortured(t, Options{}, c)
	require.NoError(t, err)
	require.Zero(t, report.Lost+report.Extra)
	require.Equal(t, report.Acknowledged, report.Confirmed+report.Forgone)
}

func all(string) bool { return true }

// TestALyingDiskIsCaught: the harness sees the loss where syncs do nothing, or
// only some of those of the log.
func TestALyingDiskIsCaught(t *testing.T) {
	var calls atomic.Int64
	now := func(path string) bool { return strings.HasSuffix(path, ".log") && calls.Add(1)%10 == 0 }
	for name, lies := range map[string]func(string) bool{"always": all, "now and then": now} {
		for _, workload := range torture.Workloads() {
			t.Run(name+" "+workload, func(t *testing.T) {
				durable := rekindle.Sync
				_, err := tortured(t, Options{IgnoreSync: lies}, torture.Config{
					Seed: 1, Rounds: 100, Workloads: []string{workload}, Durability: &durable,
				})
				require.ErrorIs(t, err, torture.ErrViolation)
				t.Log(err)
			})
		}
	}
}
