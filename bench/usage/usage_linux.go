package usage

import (
	"errors"
	"os"
	"path/filepath"
)

// Read looks at this process and its mappings of files below dir. On other
// systems than Linux nothing is known.
func Read(dir string) (Usage, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Usage{}, err
	}
	if real, err = filepath.Abs(real); err != nil {
		return Usage{}, err
	}
	var texts [3]string
	for i, name := range []string{"status", "io", "maps"} {
		text, err := os.ReadFile("/proc/self/" + name)
		if err != nil {
			return Usage{}, err
		}
		texts[i] = string(text)
	}
	return parseUsage(texts[0], texts[1], texts[2], real)
}

func parseUsage(status, io, maps, dir string) (Usage, error) {
	u := Usage{Known: true}
	var errs [4]error
	u.Peak, errs[0] = field(status, "VmHWM")
	u.Peak <<= 10 // from KiB
	u.Storage, errs[1] = field(io, "read_bytes")
	u.Calls, errs[2] = field(io, "rchar")
	u.Mapped, errs[3] = mappedBelow(maps, dir)
	return u, errors.Join(errs[:]...)
}
