package chainindex

import "math"

// filesToMerge returns how many of the files, newest first, a checkpoint that
// has fresh entries of its own writes anew together with them: those that are
// not much larger than what is merged anyway, and as many as it takes to keep to
// the cap. In front of a file that is known to be damaged it stops if it can.
//
// Each file is then at least ratio times as large as all newer ones together.
// The ratio is the least with which a chain of the present size does not run
// into the cap: checkpoints of a thousandth of the index write an entry 14 times
// in the long run and leave 3.2 files on average; with a fixed ratio the cap
// would have each of them write the newest file anew, a thousand times.
func filesToMerge(fresh int64, files []*layer) int {
	n := min(ofASize(fresh, files), intact(files))
	return max(n, beyondCap(files))
}

const minRatio = 2

func ofASize(fresh int64, files []*layer) int {
	total := float64(fresh + totalSize(files))
	ratio := max(minRatio, math.Pow(total/float64(max(fresh, 1)), 1.0/(maxFiles-1)))
	for i, l := range files {
		if float64(l.size()) > ratio*float64(fresh) {
			return i
		}
		fresh += l.size()
	}
	return len(files)
}

// intact counts the files in front of the first that is known to be damaged.
func intact(files []*layer) int {
	for i, l := range files {
		if l.file.damaged.Load() {
			return i
		}
	}
	return len(files)
}

// beyondCap counts the files that have to be merged so that, with the one that
// is written, there are no more than allowed.
func beyondCap(files []*layer) int { return max(0, len(files)+1-maxFiles) }

func totalSize(layers []*layer) (n int64) {
	for _, l := range layers {
		n += l.size()
	}
	return n
}
