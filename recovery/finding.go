package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rekindledb/rekindle/internal/fault"
)

// FindingKind says what kind of thing a Finding is.
type FindingKind string

const (
	// Damaged: bytes are not what was written, or cannot be read.
	Damaged FindingKind = "damaged"
	// Missing: a file is not there.
	Missing FindingKind = "missing"
	// Foreign: a file of another database or another copy of this one, or of
	// another format version.
	Foreign FindingKind = "foreign"
	// Inconsistent: files that are sound contradict each other.
	Inconsistent FindingKind = "inconsistent"
	// Torn: the end of the log was being written when the process or the machine
	// died. No commit that was acknowledged is concerned. After damage to the
	// very last bytes of a log that was not closed, which nothing tells apart from
	// that, it is what is found.
	Torn FindingKind = "torn end"
	// Stray: a file that belongs to nothing. It does no harm.
	Stray FindingKind = "stray"
)

// Finding is something that is not as it should be.
type Finding struct {
	Kind   FindingKind
	Path   string
	Offset int64
	Length int64  // 0: unknown, or the whole file
	Reason string // what was found
	Effect string // what it means
}

// Damage reports whether something is lost, if only what would be a substitute.
func (f *Finding) Damage() bool { return f.Kind != Torn && f.Kind != Stray }

func (f *Finding) String() string {
	where := f.Path
	if f.Length > 0 {
		where = fmt.Sprintf("%s at offset %d, %d bytes", f.Path, f.Offset, f.Length)
	}
	text := fmt.Sprintf("%s: %s: %s", f.Kind, where, f.Reason)
	if f.Effect != "" {
		text += "; " + f.Effect
	}
	return text
}

// findingOf describes an error about a file; path is the file if the error does
// not say.
func findingOf(err error, path, effect string) Finding {
	f := Finding{Kind: kindOf(err), Path: path, Reason: err.Error(), Effect: effect}
	var file *fault.File
	var system *fs.PathError
	switch {
	case errors.As(err, &file):
		f.Path, f.Offset, f.Length, f.Reason = file.Path, file.Offset, file.Length, file.Reason
	case errors.As(err, &system):
		f.Path = system.Path
	}
	return f
}

func kindOf(err error) FindingKind {
	switch {
	case errors.Is(err, fault.ErrMissingFile), errors.Is(err, fs.ErrNotExist):
		return Missing
	case errors.Is(err, fault.ErrForeignFile), errors.Is(err, fault.ErrFormat):
		return Foreign
	}
	return Damaged
}

// VerifyReport says what was checked and what was found.
type VerifyReport struct {
	Findings    []Finding
	Files       int   // read in full
	Bytes       int64 // in them
	Checkpoints int
	Rounds      int64 // of the log
	Records     int64 // in them
	Rows        int64 // compared with all indexes
}

// Damage reports whether any of the findings is damage.
func (r *VerifyReport) Damage() bool {
	for i := range r.Findings {
		if r.Findings[i].Damage() {
			return true
		}
	}
	return false
}

// Note adds what an error says about a file, unless that file has a finding
// already: the one that was found first says where.
func (r *VerifyReport) Note(err error, path, effect string) {
	f := findingOf(err, path, effect)
	for i := range r.Findings {
		if r.Findings[i].Damage() && filepath.Clean(r.Findings[i].Path) == filepath.Clean(f.Path) {
			return
		}
	}
	r.Findings = append(r.Findings, f)
}
