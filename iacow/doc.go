// Package iacow is the index strategy with an indirection array and copy-on-write
// (IACoW of "Index Checkpoints for Instant Recovery in In-Memory Database
// Systems", PVLDB 15(8), 2022): one B+tree whose nodes have ids, a node table that
// says where each node is, and checkpoints that write the nodes that changed. A
// restart maps the files of the last checkpoint and reads nothing until it is
// used. docs/format/iacow.md describes every byte of the files.
//
//	Index ──> btree.Tree      the algorithm; child words are node ids with hints
//	  └─────> store           what the tree asks for nodes by id
//	            ├─ table      id → entry: 0, arena.Ref of a block, or place in a file
//	            ├─ pool       blocks of nodes
//	            └─ files      mapped files, by place in the generation table
//	capture                   a checkpoint under way
//	image                     a checkpoint in files, for reading
//
// # Node table
//
// Pages of 512 entries. A page comes into memory when one of its entries is first
// asked for, in one read of 4 KiB, checked; then it stays, since the tree holds
// the addresses of entries and compares and swaps in them. Entries for nodes in
// files are the same words in the file and in memory. The nodes themselves stay in
// the file: a node is checked when it is first used, which a bit remembers, and
// copied into a block when it is first changed.
//
// It stays in its block until Shrink, which is called between two checkpoints when
// memory is short. A node whose stamp is not newer than the last published checkpoint
// is what that one has of it: the block ends (btree.Demote) and the entry leads to the
// file again. Inner nodes are spared: they are a hundredth, and have the hints.
// Shrink also gives the arena those blocks that nobody uses, which the pool keeps for
// the next changes otherwise.
//
// # Epochs
//
// Every node is stamped with the epoch in which its content was last changed. A
// change in a later epoch copies the node first, so that the old copy is what the
// node was at the end of the older epoch. BeginCheckpoint ends the epoch e:
//
//	(B1) closing := e      (B2) epoch := e+1      (B3) wait for the pins of now
//
// An operation latches what it will change, then reads the epoch, once. All its
// changes and drops have that stamp, its now. After B3 every operation with
// now ≤ e has ended: the contents with stamps ≤ e no longer change, and every
// operation that replaces one of them has now > e, so it has read the epoch after
// B2 and sees closing = e. It follows that at any time after B3 the content of
// node x at the end of e is, with p the epoch that the last published checkpoint
// ended,
//
//   - in the block that the table has for x, if its stamp is ≤ e;
//   - or in the one old copy of x that was handed to Replaced or Dropped with a
//     stamp ≤ e by an operation with now > e. Replaced retains such a copy, if its
//     stamp is > p, until the capture has it. It is handed over before the table
//     changes; so who finds a newer one in the table finds it in the list;
//   - or else x has not changed since p: the last published checkpoint has it, or x
//     did not exist.
//
// Blocks of the first kind are copied while operations go on. That the block was
// not reused in the meantime is seen from its version, which ascends over all
// lives of a block.
//
// # Changed nodes
//
// A node that may differ from the last published checkpoint has its dirty bit set
// in its page, and the page is in a list. Bits are set before the change shows in
// the table (Replaced), when an id is handed out (NewID) and when a node is
// dropped. A capture takes the list and looks at the nodes with dirty bits; it
// never looks at other pages, unless generations are merged. Only when the
// checkpoint is published, bits are cleared where the node certainly is what was
// published: first the bit is cleared, then the node is looked at, and when it is
// not certain the bit is set again. So whoever changes the node meanwhile either
// shows or sets the bit later. Nothing at all has to be done about an abandoned
// checkpoint: its nodes are still dirty, and p has not moved.
//
// The order of a capture's work: old copies retained so far, because they hold
// memory; the dirty nodes of one page; and again, until all pages are done; then
// the last old copies. As soon as a node is captured, its old copies are freed at
// once. Since copies come first, the memory that they take is limited by how much
// faster than the disk the index changes.
//
// # Ids
//
// A node that was dropped has its gone bit set. Its id becomes free when a checkpoint
// has been published that does not have the node, behind the barrier of the next one:
// whoever came to the id when the node was there has gone by then. If the node was
// dropped with now > e while e is captured, its entry stays until the capture has it.
// An image is dropped without ever having been in memory only if it is an overflow
// page; the store remembers those that the capture still counts (store.images).
//
// # Checkpoints
//
// A checkpoint is one new file and up to seven older ones (generations). The new
// file has the nodes that changed, the pages of the node table that changed, the
// directory of all pages, and a footer with the table of generations. A checkpoint
// that finds nothing changed writes no file and consists of the files of the one
// before. Older files are never written to.
//
// Generations go in three ways. A file of which less than a third is live: its live
// nodes are written again. More than eight files: the smallest are merged. Half of
// all nodes have changed: all are written, a full checkpoint like the first one.
// When the checkpoint is published, the entries of nodes still in files are swung
// to their new places; the old files are unmapped by the next BeginCheckpoint,
// behind its barrier.
//
// # Damage
//
// Header and footer are checked when files are opened, the page of the node table
// and its directory entry when an entry is asked for, a node when it is first used,
// all by checksums that are seeded with what the part is and where it belongs. What
// does not fit is a *fault.File from the call, and so is a fault in a mapping. A
// goroutine reads all files once after an index was opened, slowly, and logs what it
// finds. No byte of a mapping is read under a latch, pages of the node table
// excepted, where a fault is caught on the spot.
//
// # Who may call what
//
// The methods of index.Index at any time from anywhere. BeginCheckpoint, the
// capture, Shrink and Close from one goroutine at a time. The store's methods are the
// tree's; table.mu guards ids, the installing of pages and table.last, and is
// never held while a file is written.
package iacow
