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
//	    28     2  schema version
//	    30     2  flags (1 = tombstone)
//	    32     -  payload, the very bytes of the log record
//
// begin, older and log are read and written atomically. Everything else is
// written before the version is linked into a slot and never changed after.
//
// # Who may change a chain
//
//   - A writer links an uncommitted version over the newest committed one by
//     one compare-and-swap of the slot. An uncommitted or too new head is a
//     conflict at once: first updater wins.
//   - The owner of an uncommitted head may link another version over it, and
//     then either take that off again or take out the one below.
//   - gc cuts the chain below the newest version at or below the watermark,
//     and empties a slot whose head is a tombstone at or below it.
//   - Anyone may replace a log address by an arena copy of that record.
//
// The newest committed version of a row is therefore never freed while an
// uncommitted one stands on it. Every walk is made under an epoch pin, and no
// pin is held across a file read, a wait or user code.
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
// # Snapshots and the watermark
//
// A snapshot is registered before it is used: store "pending", read the CTS,
// store it. The watermark is the minimum of the durable CTS (read first) and
// all registered snapshots, where pending counts as the last published
// watermark. A reader that the collector overlooked registered later and read
// a durable CTS at least as new, so its snapshot is not below the result.
//
// # Index entries
//
// Entries are added when a version is installed and removed only by gc, from
// suspects: (index, key, row) triples that a commit, an abort or a failed
// statement left behind. A reader believes an entry only if the version it
// sees has that key.
package txn
