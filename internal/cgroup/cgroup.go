package cgroup

import (
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// NoLimit is what MemoryLimit returns where nothing limits the process, or
// nothing is known about it.
const NoLimit = math.MaxInt64

// unlimited is above every limit that somebody has set in version 1.
const unlimited = 1 << 60

// maxFile bounds what is read of a file.
const maxFile = 1 << 20

// MemoryLimit returns how many bytes of memory the process may use.
func MemoryLimit(fs vfs.FS) int64 {
	groups := parseGroups(readFile(fs, "/proc/self/cgroup"))
	limit := int64(NoLimit)
	for line := range strings.Lines(readFile(fs, "/proc/self/mountinfo")) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		if group, ok := groups[m.file]; ok {
			limit = min(limit, m.limit(fs, group))
		}
	}
	return limit
}

// The file with the limit, which tells the versions apart.
const (
	fileV1 = "memory.limit_in_bytes"
	fileV2 = "memory.max"
)

// parseGroups reads /proc/self/cgroup: the process's group by the name of the
// file with its limit. A line is "id:controllers:path", in version 2 "0::path".
func parseGroups(text string) map[string]string {
	groups := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			groups[fileV2] = parts[2]
		case contains(parts[1], "memory"):
			groups[fileV1] = parts[2]
		}
	}
	return groups
}

func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// mount is a place where groups can be seen.
type mount struct {
	file string
	root string // group at the top of it
	at   string
}

// parseMount reads a line of /proc/self/mountinfo,
//
//	36 35 98:0 /root /mount/point options [more] - type source super-options
//
// and returns false if it mounts no groups with memory limits.
func parseMount(line string) (mount, bool) {
	if !strings.Contains(line, "cgroup") { // most lines
		return mount{}, false
	}
	before, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	fields, system := strings.Fields(before), strings.Fields(after)
	if len(fields) < 5 || len(system) < 3 {
		return mount{}, false
	}
	m := mount{root: unescape(fields[3]), at: unescape(fields[4])}
	switch {
	case system[0] == "cgroup2":
		m.file = fileV2
	case system[0] == "cgroup" && contains(system[2], "memory"):
		m.file = fileV1
	default:
		return mount{}, false
	}
	return m, true
}

// unescape undoes the kernel's \ooo for white space and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) { // to make a replacer takes longer than all else here
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// limit is the smallest limit from the group up to the top of the mount.
func (m mount) limit(fs vfs.FS, group string) int64 {
	limit := int64(NoLimit)
	for dir := m.below(group); ; dir = path.Dir(dir) {
		limit = min(limit, parseLimit(readFile(fs, path.Join(m.at, dir, m.file))))
		if dir == "/" {
			return limit
		}
	}
}

// below returns the path of a group under the mount point, "/" if it is not
// there.
func (m mount) below(group string) string {
	rest, ok := strings.CutPrefix(path.Join("/", group), strings.TrimSuffix(m.root, "/"))
	if !ok || rest != "" && rest[0] != '/' || strings.Contains(group, "..") {
		return "/"
	}
	return path.Join("/", rest)
}

func parseLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= unlimited {
		return NoLimit
	}
	return n
}

// readFile returns the content of a file of the kernel's, whose size is said
// to be 0, and nothing if it cannot be read: then nothing is known.
func readFile(fs vfs.FS, name string) string {
	f, err := fs.OpenRead(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}
