package child

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mode makes the test binary a child; its value says which kind.
const mode = "REKINDLE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case "":
		os.Exit(m.Run())
	case "talk": // and wait for the end
		fmt.Println("here I am", os.Args[1])
		time.Sleep(time.Minute)
	case "fail":
		fmt.Fprintln(os.Stderr, "no good")
		os.Exit(3)
	case "parent": // starts a child of its own, names it and dies
		p, err := Start(os.Args[0], []string{"grandchild"}, []string{mode + "=talk"}, nil)
		if err != nil {
			panic(err)
		}
		if _, err := p.Output().Read(make([]byte, 1)); err != nil {
			panic(err)
		}
		fmt.Println(p.cmd.Process.Pid)
	}
	os.Exit(0)
}

func start(t *testing.T, kind string, stderr io.Writer) *Process {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	p, err := Start(executable, []string{"x"}, []string{mode + "=" + kind}, stderr)
	require.NoError(t, err)
	return p
}

func TestOutputOutlivesTheChild(t *testing.T) {
	p := start(t, "talk", nil)
	one := make([]byte, 1)
	_, err := io.ReadFull(p.Output(), one)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	rest, err := io.ReadAll(p.Output())
	require.NoError(t, err)
	require.Equal(t, "here I am x\n", string(one)+string(rest))
	require.NoError(t, p.Output().Close())
	require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

func TestChildThatEndedByItself(t *testing.T) {
	var stderr bytes.Buffer
	p := start(t, "fail", &stderr)
	out, err := io.ReadAll(p.Output())
	require.NoError(t, err)
	require.Empty(t, out)
	require.NoError(t, p.Kill())
	require.Equal(t, 3, p.cmd.ProcessState.ExitCode())
	require.Equal(t, "no good\n", stderr.String())
	require.NoError(t, p.Output().Close())
}

func TestExecutableThatDoesNotExist(t *testing.T) {
	_, err := Start("/nonexistent/child", nil, nil, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestChildDiesWithItsParent(t *testing.T) {
	p := start(t, "parent", nil)
	out, err := io.ReadAll(p.Output())
	require.NoError(t, err)
	require.NoError(t, p.Kill())
	require.NoError(t, p.Output().Close())
	grandchild, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isGone(grandchild) }, 10*time.Second, 10*time.Millisecond)
}

// isGone counts a zombie, which nobody may have waited for yet.
func isGone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
