package vfs_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// The test binary runs itself as another process with this variable set.
const childEnv = "REKINDLE_VFS_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(child(path))
	}
	os.Exit(m.Run())
}

// child locks the file, or only lives if path is "-", until its input ends.
func child(path string) int {
	if path != "-" {
		if _, err := vfs.OS().Lock(path); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
		return 1
	}
	return 0
}

// startChild returns a running child that has reported to be ready. It ends at
// the latest when the test does.
func startChild(t *testing.T, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // an error here is the kill that the test did
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

func TestLockAgainstAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	for range 2 {
		holder := startChild(t, path)
		_, err := vfs.OS().Lock(path)
		require.ErrorIs(t, err, fault.ErrLocked)

		require.NoError(t, holder.Process.Kill())
		_, err = holder.Process.Wait()
		require.NoError(t, err)
		lock, err := vfs.OS().Lock(path)
		require.NoError(t, err, "a killed holder leaves no lock")
		require.NoError(t, lock.Close())
	}
}

func TestLockIsNotInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	lock, err := vfs.OS().Lock(path)
	require.NoError(t, err)
	startChild(t, "-")
	require.NoError(t, lock.Close())
	again, err := vfs.OS().Lock(path)
	require.NoError(t, err, "the running child has no part in the lock")
	require.NoError(t, again.Close())
}

func TestFilesArePrivate(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("Windows has no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "db")
	require.NoError(t, vfs.OS().MkdirAll(dir))
	require.NoError(t, vfs.WriteFileAtomic(vfs.OS(), filepath.Join(dir, "f"), nil))
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, "f"): 0o600} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, st.Mode(), path)
	}
}

func BenchmarkOSDatasync(b *testing.B) {
	f, err := vfs.OS().Create(filepath.Join(b.TempDir(), "f"))
	require.NoError(b, err)
	defer f.Close()
	_, err = f.WriteAt(make([]byte, 1<<20), 0)
	require.NoError(b, err)
	require.NoError(b, f.Sync())
	page := make([]byte, 512)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.WriteAt(page, int64(i%2000)*512)
		if err := f.Datasync(); err != nil {
			b.Fatal(err)
		}
	}
}
