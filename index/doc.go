// Package index defines what the engine asks of a secondary or primary index
// and of the strategy that makes it survive a restart. It holds no index
// itself: package rebuild is the baseline, the checkpointed ones stand beside
// it and fit the same interfaces.
//
// # Entries
//
// An entry is a pair (key, RowID). Keys are opaque bytes, made by package
// keyenc and compared bytewise, and no longer than the engine lets pass
// (schema.MaxKeySize); entries are ordered by key, then by RowID, in
// every index, unique ones too. One key may have several entries, of which at
// most one belongs to a live row: an index is a set of *candidates*. A reader
// counts an entry only if the row version that it sees has that key (the key
// check), so an entry too many is garbage and an entry too few is a lost row.
//
// # Latches and pins
//
// Insert and Remove work under the latch of their key: no two of them run for
// one key at the same time. What the latch is (the whole index, a leaf, a
// stripe) is the index's business. Callbacks made under it (Checker, dead) must
// not call the index, must not block and must not read files.
//
// Every operation takes an epoch handle that its caller has pinned and that
// no other goroutine uses meanwhile. No latch and no pin is held between two
// calls; a scan that goes on for long is many calls to Scan.
//
// # Life of an index
//
//	Strategy.Create ─┐
//	Builder.Finish  ─┼─> Index (─> Checkpointer) ─> Close
//	Strategy.Open   ─┘
//
// Insert, Remove, Lookup, Scan and Stats may be called from any number of
// goroutines, also during a checkpoint. Close ends the life; the caller makes
// sure that no other call is running or follows.
package index
