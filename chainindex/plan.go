package chainindex

// filesToMerge returns how many of the files, newest first, a checkpoint that
// has fresh entries of its own writes anew together with them: those that are
// not much larger than what is merged anyway, so that sizes grow from file to
// file by a factor of three and an entry is not written too often; and as many
// as it takes to keep to the cap. Where a file is known to be damaged it stops, if it can.
func filesToMerge(fresh int64, files []*layer) int {
	n := min(byside(fresh, files), intact(files))
	return max(n, len(files)+1-maxFiles)
}

// mergeRatio is how many times larger the next file may be.
const mergeRatio = 2

func byside(fresh int64, files []*layer) int {
	for i, l := range files {
		if l.size() > mergeRatio*fresh {
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
