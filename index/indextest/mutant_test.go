package indextest

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/rowid"
)

// mutants are wrong in one way each; caught names a case that must see it.
func mutants() []mutant {
	return []mutant{
		{"duplicate entries count twice", "insert is idempotent", hooks{stats: func(s index.Stats) index.Stats {
			s.Entries++
			return s
		}}},
		{"checker ignored", "checker sees every other row of the key", hooks{insert: insertUnchecked}},
		{"refused entry added", "checker's error aborts the insert", hooks{insert: insertAnyway}},
		{"own row put to the checker", "random operations", hooks{insert: insertCheckingSelf}},
		{"check before the latch", "unique inserts race", hooks{insert: insertCheckedEarly}},
		{"verdict ignored", "remove asks for a present entry only", hooks{remove: removeAlways}},
		{"verdict before the latch", "owners of unique keys change", hooks{remove: removeJudgedEarly}},
		{"trailing zeros lost", "keys that are prefixes of each other", hooks{insert: insertTrimmed}},
		{"lookup stops after 100 rows", "many rows of one key", hooks{lookup: lookupSome}},
		{"dst overwritten", "rows of one key ascend", hooks{lookup: lookupOver}},
		{"resumes behind the key", "range bounds", hooks{scan: scanByKey}},
		{"resumes at the entry", "resume after changes", hooks{scan: scanAgain}},
		{"upper bound inclusive", "range bounds", hooks{scan: scanInclusive}},
		{"lower bound ignored backwards", "prefix ranges", hooks{scan: scanUnbounded}},
		{"empty upper bound taken for none", "range bounds", hooks{scan: scanEmptyBound}},
		{"ends when a fill is short", "turn round", hooks{scan: scanOnce}},
		{"disorder accepted", "bulk load refuses disorder", hooks{anyOrder: true}},
		{"last entry not captured", "checkpoint and reopen", hooks{captured: dropLast}},
		{"a lasting entry not captured", "checkpoint under load", hooks{captured: dropLasting}},
		{"files trusted", "damaged files", hooks{trusting: true}},
	}
}

type mutant struct {
	name, caught string
	hooks        hooks
}

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			c := caseNamed(t, m.caught)
			for range 10 { // races need luck
				if failed(t, func(rec T) { c.run(rec, newFixture(rec, dump{hooks: m.hooks})) }) {
					return
				}
			}
			t.Errorf("%q does not see it", m.caught)
		})
	}
}

func caseNamed(t *testing.T, name string) testCase {
	for _, c := range cases() {
		if c.name == name {
			return c
		}
	}
	require.Fail(t, "no such case", name)
	return testCase{}
}

// recorder is a T that notes failure instead of reporting it.
type recorder struct {
	*testing.T
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}

// failed runs a case to its end or its first failure, a panic being one too.
func failed(t *testing.T, run func(T)) bool {
	rec := &recorder{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { rec.failed = recover() != nil || rec.failed }()
		run(rec)
	}()
	<-done
	return rec.failed
}

func insertUnchecked(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, _ index.Checker) error {
	return ix.Insert(h, key, row, nil)
}

func insertAnyway(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	err := ix.Insert(h, key, row, unique)
	if err != nil {
		_ = ix.Insert(h, key, row, nil)
	}
	return err
}

func insertCheckingSelf(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	rows, _ := ix.Lookup(h, key, nil)
	for _, r := range rows {
		if r == row && unique != nil {
			if err := unique.Check(row); err != nil {
				return err
			}
		}
	}
	return ix.Insert(h, key, row, unique)
}

func insertCheckedEarly(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	rows, _ := ix.Lookup(h, key, nil)
	for _, r := range rows {
		if r != row && unique != nil {
			if err := unique.Check(r); err != nil {
				return err
			}
		}
	}
	runtime.Gosched()
	return ix.Insert(h, key, row, nil)
}

func insertTrimmed(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, unique index.Checker) error {
	return ix.Insert(h, bytes.TrimRight(key, "\x00"), row, unique)
}

func removeAlways(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	return ix.Remove(h, key, row, func() bool { return dead() || true })
}

func removeJudgedEarly(ix index.Index, h *epoch.Handle, key []byte, row rowid.ID, dead func() bool) (bool, error) {
	verdict := dead()
	runtime.Gosched()
	return ix.Remove(h, key, row, func() bool { return verdict })
}

func lookupSome(ix index.Index, h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	dst, err := ix.Lookup(h, key, dst)
	return dst[:min(100, len(dst))], err
}

func lookupOver(ix index.Index, h *epoch.Handle, key []byte, dst []rowid.ID) ([]rowid.ID, error) {
	return ix.Lookup(h, key, dst[:0])
}

// scanByKey remembers the key only.
func scanByKey(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if key, _ := c.Entry(); c.Started() && !r.Reverse {
		c.Set(key, rowid.Make(table, rowid.MaxOrdinal))
	}
	return ix.Scan(h, r, c, b)
}

// scanAgain delivers the entry under the cursor once more.
func scanAgain(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if key, row := c.Entry(); c.Started() && !r.Reverse {
		c.Set(key, row-1)
	}
	return ix.Scan(h, r, c, b)
}

func scanInclusive(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if r.Hi != nil {
		r.Hi = append(bytes.Clone(r.Hi), 0)
	}
	return ix.Scan(h, r, c, b)
}

func scanUnbounded(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if r.Reverse {
		r.Lo = nil
	}
	return ix.Scan(h, r, c, b)
}

func scanEmptyBound(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	if len(r.Hi) == 0 {
		r.Hi = nil
	}
	return ix.Scan(h, r, c, b)
}

func scanOnce(ix index.Index, h *epoch.Handle, r index.Range, c *index.Cursor, b *index.Batch) (bool, error) {
	_, err := ix.Scan(h, r, c, b)
	return false, err
}

func dropLast(all []Entry) []Entry { return all[:max(0, len(all)-1)] }

// dropLasting loses an entry that was there all the time.
func dropLasting(all []Entry) []Entry {
	for i, e := range all {
		if e.Row == row(stressWriters+1) && strings.HasSuffix(e.Key, "stress") {
			return append(all[:i:i], all[i+1:]...)
		}
	}
	return all
}
