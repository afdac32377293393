package cgroup

import (
	"os"
	"path"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

const (
	rootMount = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	mountV2   = "31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1   = "35 31 0:32 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n"
	mountCPU  = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
)

func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
	tests := []struct {
		name           string
		groups, mounts string
		files          map[string]string
		want           int64
	}{
		{"nothing known", "", "", nil, NoLimit},
		{"no groups mounted", "0::/a\n", rootMount, map[string]string{v2 + "/a/memory.max": "100"}, NoLimit},
		{"v2", "0::/a\n", rootMount + mountV2, map[string]string{v2 + "/a/memory.max": "1073741824\n"}, 1 << 30},
		{"v2 max", "0::/a\n", mountV2, map[string]string{v2 + "/a/memory.max": "max\n"}, NoLimit},
		{"v2 without the controller", "0::/a\n", mountV2, nil, NoLimit},
		{"v2 nested, the inner one", "0::/a/b\n", mountV2, map[string]string{v2 + "/a/memory.max": "300", v2 + "/a/b/memory.max": "200"}, 200},
		{"v2 nested, the outer one", "0::/a/b/c\n", mountV2, map[string]string{v2 + "/a/memory.max": "100", v2 + "/a/b/memory.max": "max", v2 + "/a/b/c/memory.max": "400"}, 100},
		{"v2 in a namespace", "0::/\n", mountV2, map[string]string{v2 + "/memory.max": "500"}, 500},
		{"v2 outside of the namespace", "0::/../../x\n", mountV2, map[string]string{v2 + "/memory.max": "500"}, 500},
		{"v1", "9:name=systemd:/x\n4:memory:/a\n3:cpu,cpuacct:/b\n", mountCPU + mountV1, map[string]string{v1 + "/a/memory.limit_in_bytes": "600\n", v1 + "/b/memory.limit_in_bytes": "1"}, 600},
		{"v1 together", "4:cpu,memory:/a\n", mountV1, map[string]string{v1 + "/a/memory.limit_in_bytes": "600\n"}, 600},
		{"v1 without a limit", "4:memory:/a\n", mountV1, map[string]string{v1 + "/a/memory.limit_in_bytes": "9223372036854771712\n"}, NoLimit},
		{"v1 nested", "4:memory:/a/b\n", mountV1, map[string]string{v1 + "/a/memory.limit_in_bytes": "700", v1 + "/a/b/memory.limit_in_bytes": "9223372036854771712"}, 700},
		{"v1 in a container", "4:memory:/docker/abc\n", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", map[string]string{v1 + "/memory.limit_in_bytes": "800"}, 800},
		{"v1 mounted from a group with a like name", "4:memory:/docker/abcd/e\n", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", map[string]string{v1 + "/memory.limit_in_bytes": "800", v1 + "/d/e/memory.limit_in_bytes": "1"}, 800},
		{"both", "4:memory:/a\n0::/a\n", mountV1 + mountV2, map[string]string{v1 + "/a/memory.limit_in_bytes": "900", v2 + "/a/memory.max": "950"}, 900},
		{"mount point with a space", "0::/a\n", `31 22 0:26 / /c\040g rw - cgroup2 x rw` + "\n", map[string]string{"/c g/a/memory.max": "77"}, 77},
		{"nonsense", "0::/a\n:\nx", "\n - \n1 2 3 - cgroup2\n" + mountV2, map[string]string{v2 + "/a/memory.max": "12x", v2 + "/memory.max": "-5"}, NoLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := vfs.NewMem()
			write(t, fs, "/proc/self/cgroup", tt.groups)
			write(t, fs, "/proc/self/mountinfo", tt.mounts)
			for name, text := range tt.files {
				write(t, fs, name, text)
			}
			require.Equal(t, tt.want, MemoryLimit(fs))
		})
	}
}

func write(t *testing.T, fs vfs.FS, name, text string) {
	require.NoError(t, fs.MkdirAll(path.Dir(name)))
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestThisSystem: the files of the kernel are read, though they have no size.
func TestThisSystem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has control groups")
	}
	want, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	require.Equal(t, string(want), readFile(vfs.OS(), "/proc/self/cgroup"))
	require.Positive(t, MemoryLimit(vfs.OS()))
	require.EqualValues(t, NoLimit, MemoryLimit(vfs.NewMem()))
}
