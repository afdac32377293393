// Package btree is the concurrent B+tree under the checkpointed indexes: nodes
// of 2 KiB off the Go heap, optimistic lock coupling, entries ordered by
// (key, RowID). One algorithm serves two ways of addressing children: by arena
// address (ChainIndex, MirrorIndex) and by node id through a node table
// (IACoW), where nodes may also live in mapped files.
//
// The sources are Leis, Haubenschild and Neumann, "Optimistic Lock Coupling"
// (IEEE Data Eng. Bull. 2019), Graefe's and Bayer's prefix B-trees with the head
// of each key kept apart ("poor man's normalised keys"), and HiEngine's
// copy-on-write index ("Index Checkpoints for Instant Recovery", PVLDB 2022).
//
// # Order
//
// An entry is a pair (key, row). Entries are ordered by key bytewise, then by
// row; one key may have any number of entries. A separator is a pair too,
// S = (key, row) with row 0 for "before all rows": what is left of it is below
// S, what is right of it is not. Its key is cut to what tells its neighbours
// apart, so a separator has a row exactly where the entries of one key had to
// be divided. All entries of a key k are therefore in the leaf where (k, 0)
// belongs, unless the separator at that leaf's upper end has a row; only then do
// they perhaps go on to the right.
//
// # Node
//
//	offset  size
//	     0     8  version: obsolete (bit 0), latched (bit 1), counter (bits 2-63)
//	     8     8  meta: counts and layout, see docs/format/node.md
//	    16     8  link: child word of the right neighbour (leaf), of the leftmost
//	              child (inner node) or of the next overflow page; 0 = none
//	    24     8  node id, 0 in a tree without a store; in memory the owner above it
//	    32     8  epoch that the content belongs to, 0 in a tree without a store
//	    40   p(P) prefix that all keys share, P ≤ 248 bytes
//	           8r heads: the next 8 bytes of each key
//	           8r values: row (leaf) or child word right of the separator (inner)
//	           4r slots, in nodes of slotted layout only
//	              free space
//	              heap, down from the end: the rest of each key, 8-byte words
//
// p rounds up to 8. r is chosen when a node is laid out, from the size of its
// entries, and is the number of entries that the arrays have room for. All
// numbers are little-endian. Bytes of keys are kept 8 in a word, as the number
// that has the first of them on top (padded with zeros), so that comparing
// words compares keys; keys that differ by zero bytes at the end are told apart
// by their lengths.
//
// If all keys have one length of at most 8 bytes behind the prefix, and no
// separator has a row, there are no slots and an entry takes 16 bytes. Otherwise
// a slot tells the length and where the rest is; the row of a separator follows
// the rest.
//
// The prefix is that of the keys the node has when it is laid out. A key that
// does not share it makes for a new layout or, if the others then become too
// long for one node, goes into a node of its own.
//
// A key of more than 384 bytes is long: its slot leads to a chain of up to
// three overflow pages with the whole key. Pages are nodes of level 63 and are
// never changed; each entry and each separator has its own. So at least four
// entries fit in a node whatever the keys are. MaxKey is 4096.
//
// The root keeps its block (or id) for the life of the tree; to grow it moves
// its entries into two new children, to shrink it takes those of an only child.
//
// # Reading
//
// A reader holds no latch. It enters a node by loading its version, waits while
// that is latched, and gives up if it is obsolete; it uses what it read only
// after it has seen the same version again. Before it follows a child word it
// checks the parent, so that the word is a true one, and again after it has
// loaded the child's version, so that the child was still that child then.
// Whatever it reads in between may be torn: the meta word is read once and
// checked (meta.sane), everything else is masked or compared with the node's
// size before it is an offset. A reader that is disturbed some hundred times
// latches the leaf.
//
// Blocks that a reader can still reach are not reused before its pin ends
// (package epoch), so every method needs a handle pinned by its caller.
//
// Node words are loaded by 4- and 8-byte atomic loads. They are written by
// ordinary stores under the latch on amd64, by atomic stores elsewhere and
// under the race detector (plainStores).
//
// # Writing
//
// A writer latches by compare-and-swap of the version that it has read, so a
// latch also proves that nothing has changed. It ends with the next version.
// What may be done with latches held:
//
//   - to wait for a leaf on the right of a latched one. All other latches are
//     tried once; if that fails, all are given back and the operation starts over.
//   - no image is read (below).
//   - Checker and dead are called with the latches of the key held. They must
//     not use the tree.
//
// The key's latch, that Insert promises its checker, is the latch of the leaf
// where (key, 0) belongs together with those of the leaves in which the key's
// entries go on. Whoever inserts the key with a checker has to latch the first
// of them, and whoever removes an entry of it the one that the entry is in.
//
// An insertion that splits nodes has recorded the path down before it latched
// anything. It latches the leaf, which is still the one on the path if its parent is
// unchanged, and then upwards as far as nodes are full, plans, allocates, and only
// then changes anything, so that lack of memory leaves the tree as it was. A removal
// that leaves a node under a third full moves its entries into a neighbour, or some
// of the neighbour's to it, as a separate operation.
//
// A scan holds nothing between two batches: it starts again behind the last
// entry delivered. Within a batch it goes to the right along the links, to the
// left by descending again to what is below the leaf's lower separator.
//
// # Addressing by node ids
//
// With Config.Store, a child word is
//
//	bits  0-31  node id
//	     32-63  hint: the arena address of the node ÷ 2048; 0 = none
//
// and the node table has an entry per id: an arena address, or with ImageBit
// something that the store alone understands. A hint is tried first. It counts
// if the block there is neither latched nor obsolete and has the id in its header
// line, which is read anyhow, together with the tree's owner number; otherwise the
// table is asked and the hint put right, in place, under the latch but without a new
// version and without regard to the epoch: hints are no state, and images have none.
// So that the check means something, memory that was a node is only reused as a node,
// of this tree or of another one with another owner number, or reads as zeros
// (arena.AllocStable), and a block that is not in use is obsolete or zero.
//
// The versions of a block ascend as long as the store keeps it, so that it may be
// reused for the same tree at once. Before it goes back to the arena the store waits
// for the pins of that time to end (Domain.Barrier), and does not copy or peek at
// blocks meanwhile: then no one has a guard of it.
//
// # Copy-on-write
//
// A store with checkpoints (the seam for IACoW) does the following.
//
// Epochs. Store.Epoch is read once per operation, when all nodes that it will
// change are latched; new nodes and changed ones are stamped with it. A latched
// node with another stamp is copied first (own): the old block becomes obsolete,
// Replaced hands it to the store, its content frozen but for version and hints,
// and then the copy, latched, gets into the node table. To close an epoch the
// store advances Epoch and waits for the pins of that time to end
// (Domain.Barrier): whatever the operations in flight have stamped with the old
// epoch is complete then, and no structural change spans two epochs. The
// content of a node at the end of epoch e is its current block if the stamp is
// at most e, and otherwise the newest one handed over with such a stamp; the
// store keeps those until they are captured. AppendImage writes one in the form of
// files. A dropped node is handed over in the same way together with its id,
// which the store must not give out again before a checkpoint without the node
// is durable. Both calls name the epoch of the change, which may already have
// ended.
//
// Images. A table entry with ImageBit is a node in a read-only mapping. It is
// never latched and its version word is not looked at: its state is the table
// entry, which readers check again in its place. A writer first copies it into a
// block, latched, and swings the entry by compare-and-swap; the copy has the
// content and the stamp of the image, so that this is no change. Store.Image is
// called without latches and returns a verified node; a writer that meets an image
// with latches held gives them back, copies the image and starts over. Image
// words at offset 0 are the store's to use, for a checksum say.
//
// Demote does the reverse: it latches a node, makes the table lead to an image with
// the same content, and ends the block. No version tells, but the content is the
// same: who entered the image sees the entry change if the node becomes one in memory
// again, and if that too is undone, with the same entry, it was never changed.
//
// A tree without a store pays one predictable branch per node for all this.
package btree
