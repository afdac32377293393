// Package txn is the transaction engine: timestamps, visibility, conflicts and
// the commit protocol of an optimistic multi-version row store. It knows rows
// as payload bytes and keys as encoded bytes; files belong to logstream, files
// of the array to indirection, physical clean-up to gc.
//
// # Versions
//
// A row is a slot of its table's indirection array. The slot holds 0 (no such
// row), a log address (the newest version, visible to everyone, not in memory)
// or a reference to the newest version in the arena; versions are linked from
// newest to oldest.
//
//	offset  size  field
//	     0     8  begin: commit timestamp, or bit 63 | owner while uncommitted
//	     8     8  older: word of the version below, 0 at the end
//	    16     8  log address; while uncommitted the position in the write set
//	    24     4  payload bytes
//	    28     4  bit 0 tombstone, bit 1 touched, bits 16-31 schema version
//	    32     -  payload, the very bytes of the log record
//
// begin, older, log and the word with touched are read and written atomically.
// Everything else is written before the version is linked into a slot and never
// changed after.
//
// # Who may change a chain
//
//   - A writer links an uncommitted version over the newest committed one by
//     one compare-and-swap of the slot. An uncommitted or too new head is a
//     conflict at once: first updater wins.
//   - The owner of an uncommitted head may link another version over it, and
//     then either take that off again or take out the one below.
//   - gc, one goroutine at a time, takes out versions that no snapshot sees
//     (Trim), all of them below the newest one at or below the horizon, and
//     empties a slot that holds nothing but a tombstone at or below it.
//   - Anyone may replace a log address in a slot by an arena copy of that record.
//   - The freezer replaces a committed head at or below the watermark, no tombstone,
//     by its log address. It excludes those who trim.
//   - The compaction of the log replaces a log address by that of a durable
//     relocation, in the slot or in the header of a version.
//
// An address that a relocation has replaced is dead: its segment will go. It
// must never come back. So whoever makes the address in a version's header the
// word of the slot looks at the header again afterwards, and if it has changed
// puts the new address in the place of the old one; Relocate changes the header
// first and looks at the slot again afterwards. One of the two sees the other.
// Who copies a record into the arena does so with a compare-and-swap of the very
// address it was read at.
//
// Below a version in memory there is no log address: who writes over a row, or
// brings it online, has its newest version in memory.
//
// The newest committed version of a row is therefore never freed while an
// uncommitted one stands on it, and gc writes only to the older field of
// committed versions. Every walk is made under an epoch pin, and no pin is held
// across a file read, a wait or user code. A walk that stands on a version which
// is taken out goes on as if it were not: what was below it is still below it,
// is retired later than it and so not freed under that pin.
//
// # Cold rows
//
// A version at or below the watermark is durable, so that its record can be read;
// every snapshot, present or future, sees it or a newer one of its row. As the head
// of a slot it is therefore the only version that anybody needs, and its address
// says as much as it does. What stands below it in the chain goes with it. Readers
// that hold a reference to it are pinned; writers find the slot changed when they
// install, and bring the row online again, as they do with every row that they write
// over.
//
// The mark "touched" is the reference bit of the freezer's clock. Readers by key
// set it, the freezer clears it. Both store the whole word, whose other bits are
// fixed: if they collide a mark is lost or stays for another round.
//
// An address that was read from a slot is valid as long as the slot has it. Who
// reads a record is not pinned, so that an error, or the record of another row, counts
// only if the slot, looked at again, still has the address.
//
// # Commit
//
// A transaction keeps its versions uncommitted until the log has given it a
// commit timestamp (CTS). Under the log's latch: space, validation, CTS, round
// and position. Then, outside: the records are encoded, each version gets its
// log address, then its CTS, and Publish lets the visible CTS pass. A reader
// whose snapshot is S can be sure that every version with a CTS up to S is
// stamped. The newest CTS whose round is on disk is the durable one;
// durable ≤ visible.
//
// # Snapshots, horizon and watermark
//
// A snapshot is registered before it is used: store "pending", read the CTS,
// store it. The horizon is the durable CTS, read before the registered snapshots
// are, or the last published horizon if that is older and one of them was
// pending. The collector copies horizon and snapshots together (Snapshots), and
// the copy stays true as long as it is used: a snapshot that it lacks was
// registered later and read a durable CTS at least as new, or was pending, and
// then it was registered after the published horizon was computed or pending at
// that time too. So it is at or above the horizon.
//
// A version with CTS b that one with CTS e has replaced is seen by the snapshots
// s with b ≤ s < e. It is garbage when e is at or below the horizon and the copy
// holds no such s: an old snapshot keeps what it sees, one version a row, and not
// what came and went since.
//
// The watermark is the minimum of the horizon and the registered snapshots.
//
// # Index entries
//
// Entries are added when a version is installed and removed only by gc, from
// suspects: (index, key, row) triples that a commit, an abort or a failed
// statement left behind. A reader believes an entry only if the version it
// sees has that key.
//
// Whoever takes a key away from a row reports it: a commit that replaces a
// version which has the key, with its CTS; an abort or a statement that takes
// back such a version and does not find the entry to be dead or the key in the
// row's newest committed version. So a suspect can be dropped when the newest
// version with the key has not been replaced at or below the horizon, because
// another one will come. Else it is kept until the snapshots that see that
// version have gone.
package txn
