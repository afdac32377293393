package rekindle

import (
	"bytes"
	"os"
	"strconv"
)

// residentFiles returns how many bytes of mapped files are in the memory of this
// process, its program included; 0 if the system does not say.
func residentFiles() int64 {
	text, err := os.ReadFile("/proc/self/statm") // total, resident, shared and more, in pages
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
