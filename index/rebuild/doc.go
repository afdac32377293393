// Package rebuild is the baseline index strategy: an in-memory B-tree
// (github.com/google/btree) behind a reader-writer latch, without any file.
// After a restart the engine scans the tables and loads the indexes anew, so
// opening takes time in proportion to the rows; that is the cost the other
// strategies exist to avoid, and they are measured against this one.
//
// Two more costs are those of the tree itself: its nodes live on the Go heap,
// where the collector walks them, and one writer at a time works on an index.
// The tree is not counted against the memory limit of the arena.
//
// # Latch
//
// The key's latch of package index is the latch of the whole tree. Readers
// share it through one of several locks, chosen by their handle, so that they do
// not write to the same cache line; a writer takes all of them. On two cores
// this is 7 % on parallel lookups among a million rows, and costs a write 30 ns.
//
// # Entry
//
//	head  bytes 0-7 of the key as a big-endian number, missing ones being zero
//	mid   bytes 8-15 likewise
//	rest  the bytes from 16 on; nil for a shorter key, which needs no memory of
//	      its own
//	tail  bits 48-63: length of the key, bits 0-47: ordinal of the row
//
// Comparing head and mid, then rest if both entries have one, then tail is
// comparing (key, RowID): of two keys that agree in head and mid, and of which
// one has no rest, the shorter is a prefix of the longer, the difference being
// zero bytes, and the length decides. The four words of an entry travel in
// registers through the tree's comparisons. The table part of the RowID is that
// of the index. Keys have at most 65,535 bytes; the engine admits far less.
//
// Ordinals start at 1. An entry with ordinal 0 is a pivot: it sorts just
// before all entries of its key and is in no tree.
package rebuild
