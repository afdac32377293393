// Package arena is the off-heap memory of row versions, index nodes and
// array pages. The Go collector neither sees nor moves it, and nothing on the
// Go heap grows with the number of blocks: the state of a block is one bit in
// the arena itself.
//
// # Addresses
//
// A Ref is a byte offset into the arena, stable while the block lives:
//
//	bits 63-47   0
//	bits 46-22   chunk number
//	bits 21-14   page in the chunk
//	bits 13-0    byte in the page
//
// Ref 0 is nil; it falls on the header of chunk 0, so no block has it. The
// chunk table maps chunk numbers to memory. An entry is written once, before
// any Ref into the chunk exists, and stays until Close; a full table is
// replaced by a larger copy. So Pointer needs two loads and no lock, and a
// stale Ref reads wrong bytes but does not fault.
//
// # Layout
//
//	chunk  4 MiB, mapped anonymously, on Linux 2 MiB aligned: 256 pages
//	page   16 KiB; page 0 of a chunk is its header
//	span   a run of pages in one chunk: either a slab of equal blocks or one
//	       large block
//
// A header has 64 bytes for each page, a cache line: for page 0 the chunk's
// own record (bitmap of its free pages, longest free run, list links), for
// the first page of a span the span record (class, owner, count and bitmap of
// its free blocks, list links), for its other pages the number of that first
// page. The bitmap in the record has room for 256 blocks; a span of blocks
// below 64 bytes has its bitmap in its own first 128 bytes.
//
// Block sizes are 16, 24, 32 ... 128 bytes, from there eight classes to each
// doubling up to 112 KiB, so that a block above 64 bytes wastes at most
// 12.5 %. A span has the fewest pages that lose at most 1/16 at its end and
// hold 64 KiB or 16 blocks. Blocks of a power-of-two size from 64 to 4096 bytes
// are aligned to it, every block is to 8 bytes. Above 112 KiB, up to MaxBlock,
// a block is a span of its own, in whole pages.
//
// # Shards and spans
//
// A shard is a latch, and for each class a current span, from which it
// allocates, and a list of spans with free blocks. Every slab span is owned by
// one shard, whose latch guards the span's record. Classes above 4 KiB live in
// shard 0 alone, so that rare sizes do not tie up a span in every shard.
//
//	state    in list   free blocks                       leaves it when
//	current  no        any                               the last block is taken → full
//	full     no        below 1/16, at least one          1/16 are free → listed; all free → heap
//	listed   yes       at least 1/16                     picked → current; all free → heap
//
// Free therefore latches the owner, whichever shard the caller uses; it reads
// owner, latches, and looks again. A shard that runs dry takes a listed span
// from another shard before it asks the heap for pages. In between the span
// already has the new owner and state current, so that a concurrent Free
// neither lists nor releases it. No goroutine holds two latches, nor a latch
// and the heap's mutex.
//
// # Heap
//
// The heap keeps the chunks in lists by their longest free run, and serves a
// run of n pages from the shortest sufficient one: full chunks fill up, empty
// ones stay empty. A wholly free chunk is vacated when enough free pages
// remain (release says how many): its memory goes back to the system, its
// addresses stay mapped and are the first to be used again.
//
// One block that stays keeps a whole chunk, so blocks that will stay for long
// (AllocLasting: pages of arrays, nodes that are seldom given back) have chunks
// of their own. Chunk 0, which stays anyway, takes both, and at the limit any
// chunk does. Deleting all of 500,000 rows thus leaves 3 chunks of 33; with one
// kind of chunk all 33 remained, 2 to 4 pages in use in each.
//
// Stable blocks are for structures that follow references which may be stale, and
// tell by what they find there. A page that was a span of them never becomes anything
// else. When the whole span is free, its memory goes back to the system at once and
// its place is parked, to be the first that is used for the next one. Such spans are
// one page, so that they are often free; they lie in chunks of lasting blocks, which
// then get no huge pages any more.
//
// A few blocks can keep a whole chunk, for instance rows in demand among others that
// have left. Where memory is short, Thin therefore gives back the free pages of chunks
// in use, of either kind. The record of a free page says so; the chunk stays in its list.
//
// Trim, in a quiet moment, also takes back the spans that shards hold although
// they are empty, and the empty chunk that release keeps against thrashing.
//
// Fresh memory is slow: a first touch costs a page fault and, in a virtual
// machine, often the host's fault as well (measured for a chunk: 1 to 30 ms).
// So whenever the stock of free pages is low, half a chunk at first, a goroutine
// maps and populates chunks until it is filled up, and ends; nothing runs in an
// arena that is not being filled. On one of two cores it keeps up with a
// million rows of 136 bytes a second. All chunks but the first ask for huge
// pages, which make random reads a third faster and filling twice as fast;
// the first has small ones, so that opening a database touches little memory
// and never waits for a huge page.
//
// # Reserve
//
// At the limit, what makes room needs memory first: a delete for a tombstone and the
// row that it stands on, the removal of an index entry for a copy of a node, a
// checkpoint for a tree that takes the place of the one that it writes. So a part of
// the limit is kept for those (SetReserve), by Priority, which comes with the number
// of a shard. Kept are whole runs of free pages; who may use them has a shard of its
// own there, so that nothing of their spans goes to others. Above Growth the common
// spans are tried first: the reserve costs nothing while there is room.
//
// # Test builds
//
// Under the race detector chunks come from the Go heap, because it sees
// nothing elsewhere. Where invariants.Enabled, free memory is filled with a
// pattern that Alloc verifies: a write after Free, a second Free, and a Free
// with a wrong size are reported, and reads after Free and readers that expect
// zeroes show.
package arena
