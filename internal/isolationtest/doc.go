// Package isolationtest finds out from a history of transactions which isolation
// they had. It does not know the engine: what the clients saw is all it takes.
//
// # Histories
//
// Keys hold lists. A transaction reads lists and appends values to them, every
// value of a key once in a history. So a read tells not only which version it saw
// but also in which order the versions before came about.
//
// # Dependencies
//
// Between committed transactions S and T, as Adya defines them:
//
//	ww  T appended the next value after S's
//	wr  T read the list as S left it
//	rw  T appended the next value after those that S read
//
// and order: S had ended before T began, by a clock that they share. It holds for
// the transactions of one session too. The version order of a key is its longest
// list that was read; what was committed and is not in there came after all that
// was read.
//
// # Anomalies
//
// A cycle of dependencies says that no serial order explains the history. Which
// kinds it is made of says how far from serializable it is; see Class. A cycle
// that needs order to be one says that a transaction missed what had been
// acknowledged before it began.
//
// Snapshot isolation, with snapshots not older than the beginning, allows a cycle
// only if two rw are next to each other in it: Skew.
package isolationtest
