// Package mirrorindex is the index strategy MirrorIndex, from "Index Checkpoints
// for Instant Recovery in In-Memory Database Systems" (PVLDB 15(8), 2022): every
// change goes to a chain (package chainindex), for the sake of checkpoints, and to
// one tree beside it, the mirror, for the sake of reads. Reading costs what it
// costs in a plain tree; the price is a second insertion for each entry, about
// twice the memory until a checkpoint has moved the chain's part into files, and
// a while after a restart in which reads go through the chain.
//
// # Normal work
//
// The mirror is the complete follower of the chain: both change under one latch
// of the key, so they have the same entries whenever that latch is free. Unique
// keys are checked in the mirror. Checkpoints are the chain's; files have its
// format (docs/format/chain.md).
//
// # Recovery
//
// Open maps the files, and the chain serves at once. In the background:
//
//  1. freeze the chain's head, and wait for index operations in flight;
//  2. build a tree of what is frozen and of the files, merged, bottom-up;
//  3. have all changes from now on go to both, and wait for operations in
//     flight;
//  4. go through the heads since step 1: for each entry in them, under the
//     latch of its key, make the tree say what the newest of them says;
//  5. let reads use the tree.
//
// Nobody waits for this, and checkpoints may come at any time: the layers in
// question are kept until the end. Step 4 is right because a change before step 3
// is in one of those heads, and one after it is made in the tree by its writer;
// under the latch of a key there is nothing in between. After step 4 the tree has
// what the chain has, so it does not matter that step 5 is seen by some readers
// sooner than by others.
//
// If a file turns out to be damaged, or memory does not suffice, the index goes
// on as a chain, and says so in the log. Progress tells how far it is.
package mirrorindex
