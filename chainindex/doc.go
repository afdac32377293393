// Package chainindex is the index strategy ChainIndex, from "Index Checkpoints
// for Instant Recovery in In-Memory Database Systems" (PVLDB 15(8), 2022): an
// index is a chain of B+trees, of which the newest one takes all writes. A
// checkpoint freezes that tree and writes it into a file, from which it is then
// read through a mapping; a restart maps the files. The price is that a lookup
// looks into every tree.
//
// Package mirrorindex is made of a chain and a tree that follows it.
//
// # Chain
//
//	Index.chain ─> head ─> frozen … ─> files …           newest first
//	               in memory           mapped
//	               takes writes        never changed
//
// Each of these is a layer: a tree of package btree. The list is immutable and
// replaced as a whole. Lengths are capped (maxFiles, maxFrozen), and the caps are
// enforced: a checkpoint merges files until there is room for its own; frozen
// layers, which pile up when checkpoints are abandoned, are made into one in
// memory before another is added, and if that fails, so does the checkpoint.
//
// # Entries and tombstones
//
// A tree of the chain has as its rows places: ordinal << 1, plus 1 for a
// tombstone. The newest layer that has an entry or its tombstone decides whether
// the entry is present:
//
//	insertion  puts the entry into the head, then takes its tombstone out of it
//	removal    if an older layer has the entry, puts a tombstone into the head;
//	           then takes the entry out of the head
//
// Each consists of two steps on one tree, so readers can meet the state between
// them: an entry beside its tombstone. There the entry decides. So an insertion
// takes effect with its first step and a removal with its last one, whichever
// steps there are. Invariants, with the key latched and apart from that state:
//
//   - A layer has of each entry it or its tombstone, or neither.
//   - A tombstone in the head stands over an entry that the older layers say is
//     present. So the oldest layer has no tombstones.
//
// An insertion without a checker does not look into older layers; an entry may
// be in several. Stats counts it once for each.
//
// # Latches
//
// The key's latch of package index is one of an array of mutexes, chosen by a
// hash of the key; it is taken before any latch of a tree. Under it a writer
// loads the chain and does all that it does in the head of that chain.
//
// No byte of a mapping is read under a latch, for it may have to come from the
// disk. Whoever needs what the files say (an insertion with a checker asks about
// the entries of the key in all layers, a removal has to know whether an older
// layer has the entry) looks it up first, latches, and starts over if the files
// of the chain are not the same ones. Layers in memory are looked at under the
// latch.
//
// # Freezing
//
// BeginCheckpoint, and Snapshot for a follower, put a new head in front of the
// chain and wait until all pins of that time have ended (Domain.Barrier). In
// between, writers that loaded the old chain write into the old head, others into
// the new one. That is right because
//
//   - for one key, writers follow each other under its latch, and the chain is
//     loaded under it: none writes into the old head after another has into the new
//     one. A writer that finds the old head frozen finds it, as for its key, as
//     it will stay.
//   - a reader looks into newer layers first. If it finds nothing of a key in the
//     new head, the state that it sees is that of the old one at a moment when
//     nothing was in the new one yet, or when the last change of the key had been
//     made in the old one.
//
// After the wait the layer does not change any more. Operations never wait for
// the checkpoint, except that a writer waits for another one's latch as always.
// An empty head is not frozen.
//
// # Checkpoint
//
// Capture.Write merges the frozen layers and, as filesToMerge says, some of the
// newest files into one new file, bottom-up and in post-order, in paced steps,
// and reads it back. There are no merges at other times: a file belongs to a
// checkpoint, whose manifest record makes it durable, so a merge between
// checkpoints would have nowhere to put its result but into the next one, and
// nothing is gained by writing frozen layer and merged files apart. It costs a
// checkpoint the time of the merge now and then, in which the tail of the log
// grows; it holds up nobody. Files that were merged are never touched: they are the
// index of the checkpoint before, for which the engine keeps them.
//
// Tombstones are dropped when all files are merged. The new file is then the
// whole chain, and whatever chain there is without it, that of the checkpoint
// before, does not have the tombstones but the entries, and a log that says that
// they are to go.
//
// After Published the chain has the file in the place of the layers it was made
// of; those are released when no pin that exists then is left. After Abandon
// they stay, and are part of the next checkpoint.
//
// # Files
//
// docs/format/chain.md describes every byte. A file is a tree of package btree in
// the form of images: mappedFile is the node store that hands them out to the
// tree's own search, nodeWriter the one that takes them from its builder, node by
// node, so that no tree is ever in memory as a whole. Header and footer are read
// and checked before a file is mapped, nodes when they are first used; a bitmap
// remembers which ones were. A verifier reads the files of an opened index
// through once, slowly, and logs what it finds. Files name each other by
// checkpoint and checksum, so that no other set of files is taken for a chain.
//
// Damage is a *fault.File from Open, or from the operation that meets it. A
// memory fault in a mapping is such an error too. A file known to be damaged is
// left out of merges as long as the cap allows it.
//
// # Followers
//
// A follower is a tree that gets every change under the same latch: see Follow
// and Snapshot for how a tree becomes one while the index is in use. Complete, it
// has exactly the entries of the index. It then answers for unique keys: the
// entry goes into the head, then into the follower with the checker, and if that
// refuses, out of the head again, unless the follower has it from before.
package chainindex
