// Package rowid defines the identity of a row and hands identities out.
//
// A RowID is fixed while its row lives, whatever happens to the row's content
// and place:
//
//	bits   63..48  table
//	       47..0   ordinal, from 1; 0 is never a row
//
// An ordinal is the row's slot in the indirection array of its table, so
// ordinals should stay dense: the Allocator gives out freed ones before fresh
// ones.
//
// # Allocation
//
// Fresh ordinals come from one high-water mark in ranges that end at the next
// multiple of 64. A shard owns one range at a time and takes from it with a
// single CAS; it meets the other shards only once a range. One range is eight
// cache lines of the array, so writers of different shards rarely share a line.
//
// Freed ordinals are collected in magazines of up to 256 (Bonwick's and Adams's
// magazine layer, USENIX'01): Free fills one behind a mutex, a shard takes a
// whole magazine, a full one if there is any, and empties it on its own. Before
// it takes a range of fresh ordinals it takes over the magazine of another
// shard, if one is left. An
// ordinal is in one place at any time: beyond the high-water mark, in the rest
// of one shard's range, in one magazine, or in use.
//
// Nothing here is durable. After a restart the mark starts above the highest
// ordinal in use, and the free ordinals below it, among them the rests of
// ranges, are found in the array and given to Free: in the background, or by
// the source that an allocator asks before it raises the mark.
package rowid
