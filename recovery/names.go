package recovery

import (
	"fmt"
	"path"
	"strconv"

	"github.com/rekindledb/rekindle/rowid"
)

// Names inside a database directory.
const (
	lockName       = "LOCK"
	currentName    = "CURRENT"
	manifestPrefix = "MANIFEST-"
	checkpointDir  = "ckpt"
	suspectsName   = "suspects"
	recordName     = "record"
)

// LogDir is the folder of the log in a database directory.
const LogDir = "log"

// maxNumber is the largest number of a checkpoint and of a manifest file: far from
// where the next one would be 0.
const maxNumber = 1<<62 - 1

// numberText is how a number stands in names.
func numberText(n uint64) string { return fmt.Sprintf("%06d", n) }

// parseNumber is the reverse of numberText for the numbers that are in use; any
// other text is not ok.
func parseNumber(text string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && n > 0 && n <= maxNumber && numberText(n) == text
}

func manifestName(number uint64) string { return manifestPrefix + numberText(number) }

// folderName is the path of a checkpoint's folder inside the database directory.
// Paths inside of it are separated by slashes, as the manifest has them.
func folderName(checkpoint uint64) string { return path.Join(checkpointDir, numberText(checkpoint)) }

// arrayName is the path of an array file inside the database directory. The
// generation of an array file is the number of the checkpoint that wrote it.
func arrayName(checkpoint uint64, table rowid.Table) string {
	return path.Join(folderName(checkpoint), fmt.Sprintf("array-%d.ria", table))
}

// indexFileName is the path of an index file inside the database directory.
func indexFileName(checkpoint uint64, table rowid.Table, number int, ext string) string {
	return path.Join(folderName(checkpoint), fmt.Sprintf("index-%d-%d.%s", table, number, ext))
}

// suspectsFileName is the path of a suspects file inside the database directory.
func suspectsFileName(checkpoint uint64) string {
	return path.Join(folderName(checkpoint), suspectsName)
}

// recordFileName is the path of the copy of a checkpoint's manifest record inside
// the database directory.
func recordFileName(checkpoint uint64) string {
	return path.Join(folderName(checkpoint), recordName)
}
