package vfs_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/internal/vfs"
)

// script is a list of steps on a Mem; a failing step ends the test.
type script struct {
	t   require.TestingT
	mem *vfs.Mem
}

// file creates a file; synced says whether its content is, not its name.
func (s script) file(name, content string, synced bool) {
	f, err := s.mem.Create(name)
	require.NoError(s.t, err)
	write(s.t, f, content, 0)
	if synced {
		require.NoError(s.t, f.Datasync())
	}
	require.NoError(s.t, f.Close())
}

// durable creates a file that no crash can take away.
func (s script) durable(name, content string) {
	s.file(name, content, true)
	s.syncDir(dirOf(name))
}

func (s script) edit(name string, change func(f vfs.File)) {
	f, err := s.mem.Open(name)
	require.NoError(s.t, err)
	change(f)
	require.NoError(s.t, f.Close())
}

func (s script) write(name, content string, off int64) {
	s.edit(name, func(f vfs.File) { write(s.t, f, content, off) })
}

func (s script) truncate(name string, size int64) {
	s.edit(name, func(f vfs.File) { require.NoError(s.t, f.Truncate(size)) })
}

func (s script) sync(name string) {
	s.edit(name, func(f vfs.File) { require.NoError(s.t, f.Sync()) })
}

func (s script) syncDir(dir string)     { require.NoError(s.t, s.mem.SyncDir(dir)) }
func (s script) mkdir(dir string)       { require.NoError(s.t, s.mem.MkdirAll(dir)) }
func (s script) remove(name string)     { require.NoError(s.t, s.mem.Remove(name)) }
func (s script) rename(from, to string) { require.NoError(s.t, s.mem.Rename(from, to)) }

func dirOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}

// show renders a file system in one line: names with their content, in which a
// sector is one letter, '.' is a sector of zeros, and an incomplete last sector
// is in lower case.
func show(m *vfs.Mem) string {
	dump := m.Dump()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(dump)) {
		out = append(out, strings.TrimSpace(name+" "+letters(dump[name])))
	}
	return strings.Join(out, ", ")
}

func letters(content []byte) string {
	var b strings.Builder
	for sector := range slices.Chunk(content, 512) {
		letter := string(sector[:1])
		if letter == "\x00" {
			letter = "."
		}
		if len(sector) < 512 {
			letter = strings.ToLower(letter)
		}
		b.WriteString(letter)
	}
	return b.String()
}

// sectors makes content with one sector a letter.
func sectors(letters string) string {
	var b strings.Builder
	for _, letter := range letters {
		b.WriteString(strings.Repeat(string(letter), 512))
	}
	return b.String()
}

// TestCrashOutcomes states for each sequence what a strict crash leaves and
// which states random crashes leave: all of these, no other.
func TestCrashOutcomes(t *testing.T) {
	cases := []struct {
		name   string
		run    func(s script)
		strict string
		random []string
	}{
		{"nothing", func(script) {}, "", []string{""}},
		{"durable file", func(s script) { s.durable("f", sectors("AB")) }, "f AB", []string{"f AB"}},
		{"name not synced", func(s script) { s.file("f", sectors("A"), true) }, "", []string{"", "f A"}},
		{"content not synced", func(s script) {
			s.file("f", sectors("AB"), false)
			s.syncDir(".")
		}, "f", []string{"f", "f .", "f A", "f ..", "f A.", "f .B", "f AB", "f a", "f Ab", "f .b"}},
		{"overwrite", func(s script) {
			s.durable("f", sectors("AB"))
			s.write("f", sectors("XY"), 0)
		}, "f AB", []string{"f AB", "f XB", "f AY", "f XY"}},
		{"overwrite and sync", func(s script) {
			s.durable("f", sectors("AB"))
			s.write("f", sectors("XY"), 0)
			s.sync("f")
			s.write("f", sectors("P"), 0)
		}, "f XY", []string{"f XY", "f PY"}},
		{"a sector written twice", func(s script) {
			s.durable("f", sectors("A"))
			s.write("f", sectors("X"), 0)
			s.write("f", sectors("Y"), 0)
		}, "f A", []string{"f A", "f X", "f Y"}},
		{"write into zeroed space", func(s script) {
			s.durable("f", strings.Repeat("\x00", 1536))
			s.write("f", sectors("AB"), 0)
		}, "f ...", []string{"f ...", "f A..", "f .B.", "f AB."}},
		{"shrink", func(s script) {
			s.durable("f", sectors("A"))
			s.truncate("f", 0)
		}, "f A", []string{"f A", "f", "f .", "f a"}},
		{"remove", func(s script) {
			s.durable("f", sectors("A"))
			s.remove("f")
		}, "f A", []string{"f A", ""}},
		{"remove and sync", func(s script) {
			s.durable("f", sectors("A"))
			s.remove("f")
			s.syncDir(".")
		}, "", []string{""}},
		{"remove before the name was synced", func(s script) {
			s.file("f", sectors("A"), true)
			s.remove("f")
		}, "", []string{"", "f A"}},
		{"rename", func(s script) {
			s.durable("f", sectors("A"))
			s.rename("f", "g")
		}, "f A", []string{"f A", "f A, g A", "g A"}},
		{"rename over", func(s script) {
			s.durable("f", sectors("A"))
			s.durable("g", sectors("B"))
			s.rename("f", "g")
		}, "f A, g B", []string{"f A, g B", "f A, g A", "g A"}},
		{"rename over and sync", func(s script) {
			s.durable("f", sectors("A"))
			s.durable("g", sectors("B"))
			s.rename("f", "g")
			s.syncDir(".")
		}, "g A", []string{"g A"}},
		{"rename twice", func(s script) {
			s.durable("f", sectors("A"))
			s.rename("f", "g")
			s.rename("g", "h")
		}, "f A", []string{
			"f A", "f A, g A", "g A", "f A, h A", "h A", "f A, g A, h A", "g A, h A",
		}},
		{"directory", func(s script) {
			s.mkdir("d/e")
			s.syncDir("d")
		}, "", []string{"", "d/, d/e/"}},
		{"synced file in an unsynced directory", func(s script) {
			s.mkdir("d")
			s.durable("d/f", sectors("A"))
		}, "", []string{"", "d/, d/f A"}},
		{"rename across directories, new one synced", func(s script) {
			s.mkdir("d")
			s.durable("f", sectors("A"))
			s.rename("f", "d/f")
			s.syncDir("d")
		}, "d/, d/f A, f A", []string{"d/, d/f A, f A", "d/, d/f A"}},
		{"rename across directories, old one synced", func(s script) {
			s.mkdir("d")
			s.durable("f", sectors("A"))
			s.rename("f", "d/f")
			s.syncDir(".")
		}, "d/, d/f A", []string{"d/, d/f A"}},
		{"replaced after a rename across directories", func(s script) {
			s.mkdir("d")
			s.durable("f", sectors("A"))
			s.durable("g", sectors("B"))
			s.rename("f", "d/x")
			s.rename("g", "d/x")
			s.syncDir("d")
		}, "d/, d/x B, f A, g B", []string{
			"d/, d/x B, f A, g B", "d/, d/x B, g B", "d/, d/x B, f A", "d/, d/x B",
		}},
		{"renamed directory", func(s script) {
			s.mkdir("d")
			s.durable("d/f", sectors("A"))
			s.syncDir(".")
			s.rename("d", "e")
		}, "d/, d/f A", []string{"d/, d/f A", "d/, d/f A, e/, e/f A", "e/, e/f A"}},
		{"directories that change places", func(s script) {
			s.mkdir("d")
			s.mkdir("e")
			s.syncDir(".")
			s.rename("d", "e/d")
			s.rename("e/d", "d")
			s.rename("e", "d/e")
		}, "d/, e/", []string{
			"d/, e/", "d/, e/, e/d/", "e/, e/d/", "d/, d/e/, e/", "d/, d/e/",
		}},
		{"removed directory", func(s script) {
			s.mkdir("d")
			s.syncDir(".")
			s.durable("d/f", sectors("A"))
			s.remove("d/f")
			s.remove("d")
			s.syncDir(".")
		}, "", []string{""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			c.run(script{t, mem})
			now := show(mem)
			require.Equal(t, c.strict, show(mem.CrashClone(nil, vfs.Strict)), "strict")
			require.Equal(t, now, show(mem.CrashClone(nil, vfs.Keep)), "keep")
			require.Equal(t, now, show(mem.CrashClone(nil, vfs.Kill)), "kill")
			require.Equal(t, sorted(c.random), randomOutcomes(mem), "random")
			require.Equal(t, sorted(c.random), randomOutcomes(mem.CrashClone(nil, vfs.Kill)), "power cut after a kill")
			require.Equal(t, now, show(mem), "the original goes on unharmed")
		})
	}
}

func randomOutcomes(mem *vfs.Mem) []string {
	seen := map[string]bool{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		seen[show(mem.CrashClone(rng, vfs.Random))] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func TestTornSizes(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("A"))
	s.write("f", strings.Repeat("B", 5000), 512)
	rng := rand.New(rand.NewPCG(3, 4))
	whole, odd := 0, 0
	for range 1000 {
		size := len(mem.CrashClone(rng, vfs.Random).Dump()["f"])
		require.True(t, 512 <= size && size <= 5512, "size %d", size)
		switch {
		case size == 512 || size == 5512:
		case size%512 == 0:
			whole++
		default:
			odd++
		}
	}
	require.Greater(t, whole, 100)
	require.Greater(t, odd, 100)
}

// After a crash nothing is unsynced, so a second one changes nothing.
func TestCrashTwice(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem := vfs.NewMem()
		s := script{t, mem}
		s.mkdir("d")
		s.file("d/a", sectors("ABC"), false)
		s.durable("b", sectors("ABC"))
		s.rename("b", "d/b")
		s.write("d/b", sectors("XYZ"), 256)
		for _, mode := range []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random, vfs.NamesFirst, vfs.DataFirst, vfs.DeletesFirst, vfs.LastFirst} {
			first := mem.CrashClone(rng, mode)
			for _, again := range []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random} {
				require.Equal(t, first.Dump(), first.CrashClone(rng, again).Dump(), "seed %d: %v, then %v", seed, mode, again)
			}
		}
	}
}

// TestCrashModes shows what each mode leaves of one of everything.
func TestCrashModes(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	for _, name := range []string{"edited", "removed", "from", "to"} {
		s.durable(name, sectors("ABCD"))
	}
	s.write("edited", sectors("WXYZ"), 0)
	s.file("created", sectors("WXYZ"), false)
	require.NoError(t, mem.Remove("removed"))
	s.write("from", sectors("WXYZ"), 0)
	s.rename("from", "to")
	for mode, want := range map[vfs.CrashMode]string{
		vfs.Strict:       "edited ABCD, from ABCD, removed ABCD, to ABCD",
		vfs.Keep:         "created WXYZ, edited WXYZ, to WXYZ",
		vfs.Kill:         "created WXYZ, edited WXYZ, to WXYZ",
		vfs.NamesFirst:   "created, edited ABCD, to ABCD",
		vfs.DataFirst:    "edited WXYZ, from WXYZ, removed ABCD, to ABCD",
		vfs.DeletesFirst: "edited ABCD, from ABCD, to ABCD",
		vfs.LastFirst:    "created ..YZ, edited ABYZ, to ABYZ",
	} {
		require.Equal(t, want, show(mem.CrashClone(nil, mode)), "%v", mode)
	}
}

func TestCrashCloneIsDeterministic(t *testing.T) {
	outcome := func() map[string][]byte {
		rng := rand.New(rand.NewPCG(7, 7))
		mem := vfs.NewMem()
		s := script{t, mem}
		for i := range 20 {
			s.file(fmt.Sprint(i), sectors("ABCDEFGH"), false)
		}
		return mem.CrashClone(rng, vfs.Random).Dump()
	}
	require.Equal(t, outcome(), outcome())
}

// Clones share pages with the original, and the synced content with the current
// one; a write to one of them must not show in another.
func TestClonesAreIndependent(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("ABCDEFGHIJKLMNOPQRST"))
	all := []*vfs.Mem{mem}
	for i, mode := range []vfs.CrashMode{vfs.Strict, vfs.Keep, vfs.Random, vfs.Kill, vfs.Random, vfs.Keep} {
		all = append(all, all[i].CrashClone(rand.New(rand.NewPCG(1, 1)), mode))
	}
	// set changes sectors 2i and 2i+1, which are i's own.
	set := func(letters string, i, sector int) string { return letters[:2*i+sector] + "!" + letters[2*i+sector+1:] }
	for i, m := range all {
		c := script{t, m}
		c.write("f", sectors("!"), int64(2*i)*512)
		c.sync("f")
		c.write("f", sectors("!"), int64(2*i+1)*512)
	}
	for i, m := range all {
		synced := set("f ABCDEFGHIJKLMNOPQRST", i, 2)
		require.Equal(t, set(synced, i, 3), show(m), "clone %d", i)
		require.Equal(t, synced, show(m.CrashClone(nil, vfs.Strict)), "clone %d", i)
	}
}

// What a random crash kept is on the medium; writing over it is not.
func TestRandomCloneHasItsOwnMedium(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.file("f", sectors("ABCDEFGH"), false)
	s.syncDir(".")
	for seed := range uint64(20) {
		clone := mem.CrashClone(rand.New(rand.NewPCG(seed, 0)), vfs.Random)
		left := show(clone)
		script{t, clone}.write("f", sectors("XXXXXXXX"), 0)
		require.Equal(t, left, show(clone.CrashClone(nil, vfs.Strict)), "seed %d", seed)
	}
}

// Both names that half a rename leaves are files of their own.
func TestHalfRenameLeavesTwoFiles(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.mkdir("d")
	s.syncDir(".")
	s.durable("d/f", sectors("A"))
	s.durable("g", sectors("B"))
	s.rename("g", "h")
	s.rename("d", "e")
	for seed := range uint64(10000) {
		clone := mem.CrashClone(rand.New(rand.NewPCG(seed, 0)), vfs.Random)
		if show(clone) != "d/, d/f A, e/, e/f A, g B, h B" {
			continue
		}
		c := script{t, clone}
		c.write("d/f", sectors("X"), 0)
		c.file("e/n", "", false)
		c.write("h", sectors("Y"), 0)
		require.Equal(t, "d/, d/f X, e/, e/f A, e/n, g B, h Y", show(clone))
		return
	}
	t.Fatal("no clone has all four names")
}

// A sector goes on through states of its own in the original and in a clone.
func TestStatesAreNotShared(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("A"))
	for _, letter := range "BCDEFG" {
		s.write("f", sectors(string(letter)), 0)
	}
	clone := mem.CrashClone(nil, vfs.Kill)
	for _, letter := range []string{"P", "Q"} {
		s.write("f", sectors(letter), 0)
		script{t, clone}.write("f", sectors(strings.ToLower(letter)), 0)
	}
	require.Equal(t, []string{"f A", "f B", "f C", "f D", "f E", "f F", "f G", "f P", "f Q"}, randomOutcomes(mem))
	require.Equal(t, []string{"f A", "f B", "f C", "f D", "f E", "f F", "f G", "f p", "f q"}, randomOutcomes(clone))
}

func TestCrashCloneHasNoHandlesLocksAndHook(t *testing.T) {
	mem := vfs.NewMem()
	lock, err := mem.Lock("LOCK")
	require.NoError(t, err)
	mem.OnOp(func(int, vfs.Op) error { return errors.New("not in the clone") })
	clone := mem.CrashClone(nil, vfs.Keep)
	require.Equal(t, 1, mem.Handles())
	require.Zero(t, clone.Handles())
	require.Zero(t, clone.Ops())
	other, err := clone.Lock("LOCK")
	require.NoError(t, err)
	require.NoError(t, clone.MkdirAll("d"))
	require.NoError(t, other.Close())
	require.NoError(t, lock.Close())
}

func TestOnOp(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	var log []string
	mem.OnOp(func(n int, op vfs.Op) error {
		before := show(mem.CrashClone(nil, vfs.Keep))
		require.Equal(t, before, show(mem), "the hook may look at the file system")
		log = append(log, fmt.Sprintf("%d %v, before: %s", n, op, before))
		return nil
	})
	s.mkdir("d")
	s.file("d/f", sectors("A"), true)
	s.truncate("d/f", 512)
	s.sync("d/f")
	s.rename("d/f", "g")
	s.syncDir("d")
	s.remove("g")
	require.Equal(t, []string{
		"1 mkdir-all d, before: ",
		"2 create d/f, before: d/",
		"3 write d/f [0,+512), before: d/, d/f",
		"4 datasync d/f, before: d/, d/f A",
		"5 truncate d/f 512, before: d/, d/f A",
		"6 sync d/f, before: d/, d/f A",
		"7 rename d/f -> g, before: d/, d/f A",
		"8 sync-dir d, before: d/, g A",
		"9 remove g, before: d/, g A",
	}, log)
	require.Equal(t, 9, mem.Ops())
	mem.OnOp(nil)
	s.file("h", "", false)
	require.Len(t, log, 9)
}

func TestOnOpFailsTheOperation(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("A"))
	f, err := mem.Open("f")
	require.NoError(t, err)
	before, refused := mem.Dump(), errors.New("refused")
	mem.OnOp(func(int, vfs.Op) error { return refused })
	_, createErr := mem.Create("g")
	_, writeErr := f.WriteAt([]byte("x"), 0)
	errs := []error{
		createErr, writeErr, f.Truncate(0), f.Sync(), f.Datasync(), mem.Remove("f"),
		mem.Rename("f", "g"), mem.MkdirAll("d"), mem.SyncDir("."),
	}
	for i, err := range errs {
		require.ErrorIs(t, err, refused, "operation %d", i)
	}
	require.NoError(t, f.Close())
	require.Equal(t, before, mem.Dump())
}

// A failed fsync leaves sectors that reads may still show, but that no later
// sync writes.
func TestFailedWriteback(t *testing.T) {
	cases := []struct {
		name           string
		fail           func(m *vfs.Mem) error
		read, uncached string
	}{
		{"cached", func(m *vfs.Mem) error { return m.FailWriteback("f") }, "f AXC", "f ABC"},
		{"dropped", func(m *vfs.Mem) error { return m.DropUnsynced("f") }, "f ABC", "f ABC"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := script{t, mem}
			s.durable("f", sectors("ABC"))
			s.write("f", sectors("X"), 512)
			require.NoError(t, c.fail(mem))
			require.Equal(t, c.read, show(mem))
			s.sync("f")
			require.Equal(t, []string{"f ABC"}, randomOutcomes(mem), "the second sync proves nothing")
			require.Equal(t, c.read, show(mem))
			s.edit("f", func(f vfs.File) { require.NoError(t, f.DropCache()) })
			require.Equal(t, c.uncached, show(mem))
			s.write("f", sectors("Z"), 512)
			s.sync("f")
			require.Equal(t, []string{"f AZC"}, randomOutcomes(mem), "written anew it is safe")
			s.write("f", sectors("P"), 1024)
			require.NoError(t, c.fail(mem))
			s.write("f", sectors("Q"), 1024)
			s.edit("f", func(f vfs.File) { require.NoError(t, f.DropCache()) })
			require.Equal(t, "f AZQ", show(mem), "what was written since is not dropped")
			require.Error(t, c.fail(vfs.NewMem()), "no such file")
		})
	}
}

// What a failed fsync loses can be the extension of the file; its size stays.
func TestFailedWritebackOfAnAppend(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("A"))
	s.write("f", sectors("BC"), 512)
	require.NoError(t, mem.DropUnsynced("f"))
	require.Equal(t, "f A..", show(mem))
	require.Equal(t, "f A", show(mem.CrashClone(nil, vfs.Strict)))
	s.sync("f")
	require.Equal(t, "f A..", show(mem.CrashClone(nil, vfs.Strict)))
}

func TestKillKeepsTheDifferenceBetweenCacheAndMedium(t *testing.T) {
	mem := vfs.NewMem()
	s := script{t, mem}
	s.durable("f", sectors("AB"))
	s.write("f", sectors("X"), 0)
	s.file("g", sectors("G"), true)
	killed := mem.CrashClone(nil, vfs.Kill)
	require.Equal(t, "f XB, g G", show(killed))
	require.Equal(t, "f AB", show(killed.CrashClone(nil, vfs.Strict)))
	k := script{t, killed}
	k.sync("f")
	k.syncDir(".")
	require.Equal(t, "f XB, g G", show(killed.CrashClone(nil, vfs.Strict)), "recovery made it durable")
	require.Equal(t, "f AB", show(mem.CrashClone(nil, vfs.Strict)), "in the clone only")
}
