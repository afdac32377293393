package vfs

import (
	"bytes"
	"os"
	"strconv"
)

// procStatm says how much memory the process has, in pages: total, resident, of
// files, and more.
const procStatm = "/proc/self/statm"

// ResidentFiles returns how many bytes of mapped files are in the memory of this
// process, its program included; 0 if the system does not say.
func ResidentFiles() int64 {
	text, err := os.ReadFile(procStatm)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
