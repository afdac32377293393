package vfs

import (
	"math/rand/v2"
	"slices"
)

// memEntries is the entries of a directory: those that readers see and those
// on the medium.
type memEntries struct {
	current map[string]*memNode
	synced  map[string]*memNode
}

// memChange is one change of an entry that is not on the medium yet.
type memChange struct {
	dir  *memNode
	name string
	node *memNode // nil: the entry is removed

	// needs is a change without which this one cannot be durable. The removal
	// of a renamed file's old name needs the new name, or the file would be
	// lost. A renamed directory needs the renaming of directories before it, or
	// two could end up inside each other.
	needs   *memChange
	removed *memNode // what Remove took away
	dirMove bool     // the last step of renaming a directory
}

// persist puts the change on the medium. What it needed is there already.
func (c *memChange) persist() {
	setEntry(c.dir.entries.synced, c.name, c.node)
	c.needs = nil
}

func setEntry(entries map[string]*memNode, name string, node *memNode) {
	if node == nil {
		delete(entries, name)
	} else {
		entries[name] = node
	}
}

// memJournal is the unsynced entry changes of all directories, oldest first.
type memJournal []*memChange

// set changes an entry for readers and notes that the medium lacks it.
func (j *memJournal) set(dir *memNode, name string, node *memNode, needs *memChange) *memChange {
	setEntry(dir.entries.current, name, node)
	c := &memChange{dir: dir, name: name, node: node, needs: needs}
	*j = append(*j, c)
	return c
}

// rename moves a node to another entry.
func (j *memJournal) rename(node, oldDir *memNode, oldName string, newDir *memNode, newName string) {
	var before *memChange
	if node.isDir() {
		before = j.lastDirMove()
	}
	made := j.set(newDir, newName, node, before)
	j.set(oldDir, oldName, nil, made).dirMove = node.isDir()
}

func (j *memJournal) lastDirMove() *memChange {
	for _, c := range slices.Backward(*j) {
		if c.dirMove {
			return c
		}
	}
	return nil
}

// syncDir makes the changes of a directory durable, and what they need in other
// directories.
func (j *memJournal) syncDir(dir *memNode) {
	durable := map[*memChange]bool{}
	for _, c := range *j {
		if c.dir == dir {
			for ; c != nil; c = c.needs {
				durable[c] = true
			}
		}
	}
	var kept memJournal
	for _, c := range *j {
		if !durable[c] {
			kept = append(kept, c)
			continue
		}
		c.persist()
		kept = slices.DeleteFunc(kept, c.supersedes)
	}
	*j = kept
}

// supersedes reports whether an earlier change means nothing any more once c
// is durable: it is of the same entry, or of a directory that is gone.
func (c *memChange) supersedes(earlier *memChange) bool {
	return earlier.dir == c.dir && earlier.name == c.name || c.removed != nil && earlier.dir == c.removed
}

// settle applies the changes that the crash happens to keep, and can keep without
// those that it does not.
func (j *memJournal) settle(keep func(*memChange) bool) {
	kept := map[*memChange]bool{nil: true}
	for _, c := range *j {
		if kept[c.needs] && keep(c) {
			kept[c] = true
			c.persist()
		}
	}
}

// keepSome keeps nearly all, nearly none, or any part in between.
func keepSome(rng *rand.Rand) func(*memChange) bool {
	keep := rng.Float64()
	return func(*memChange) bool { return rng.Float64() < keep }
}
