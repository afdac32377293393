// Package gc gives back what nobody can see any more: row versions, index
// entries, row identities, log segments and checkpoint files.
//
// # Rows and entries
//
// Transactions report garbage in order (see txn.Queue). A piece is due when
// the horizon has reached its commit timestamp: old snapshots do not hold up the
// queue. The order of one row's pieces is versions, suspects, row: the chain is
// trimmed first, so that an old version that nobody sees no longer vouches for
// an old key; then each suspect (index, key, row) is removed if, under the key's
// latch, no version of the row has that key; last the ordinal of a deleted row
// is free for reuse. A suspect is the only way to a physical removal: an entry
// forgotten is garbage that the key check of every reader hides, an entry
// removed wrongly is a lost row.
//
// What an old snapshot still sees is held in a list of that snapshot, each piece
// once: the row for each of its older versions that stay, a suspect whose key
// such a version has, the identity of a deleted row that is seen. When the
// snapshot has gone its list is due again. So garbage held back is in proportion
// to the versions that the snapshots see.
//
// What there is no memory for, as an index copies a node to remove an entry, is
// tried again a moment later, and no identity becomes free before it.
//
// One collector works a database, on one goroutine at a time. When it falls
// behind, writers lend a hand through Assist.
//
// # Files
//
// Segments and Files apply the rules for letting go: the last two complete
// checkpoints stay usable, always. A log segment goes when it ends at or
// before the replay positions of both and holds no live byte at either; a
// checkpoint file goes when neither names it.
package gc
