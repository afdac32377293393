// Package usage says what this process uses of the machine.
package usage

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// Usage is what a process has used so far, in bytes.
type Usage struct {
	Known   bool  // the system can tell
	Peak    int64 // memory resident, at most
	Mapped  int64 // now, of the database's files
	Storage int64 // read from the device
	Calls   int64 // returned by read system calls
}

// Since leaves what was read after an earlier moment.
func (u *Usage) Since(before Usage) {
	u.Storage -= before.Storage
	u.Calls -= before.Calls
}

// field returns the number behind "name:" in a list of lines.
func field(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		value, found := strings.CutPrefix(line, name+":")
		if !found {
			continue
		}
		value = strings.TrimSuffix(strings.TrimSpace(value), " kB")
		return strconv.ParseInt(value, 10, 64)
	}
	return 0, fmt.Errorf("there is no %s", name)
}

// mappedBelow sums the mappings of files below a directory in a list as
// /proc/self/maps has it: from-to access offset device inode path.
func mappedBelow(maps, dir string) (int64, error) {
	var sum int64
	lines := bufio.NewScanner(strings.NewReader(maps))
	for lines.Scan() {
		path := strings.IndexByte(lines.Text(), '/')
		if path < 0 || !strings.HasPrefix(lines.Text()[path:], dir+"/") {
			continue
		}
		var from, to uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err != nil {
			return 0, fmt.Errorf("mapping %q: %w", lines.Text(), err)
		}
		sum += int64(to - from)
	}
	return sum, lines.Err()
}
