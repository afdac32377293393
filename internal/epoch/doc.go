// Package epoch decides when a block may be reused that was taken out of a
// shared structure while others may still be reading it.
//
// Readers of lock-free structures pin an epoch through a Handle for the time
// of one operation. A block that was made unreachable is retired, not freed;
// it is freed when every pin has ended that began before. A pin costs two
// atomic stores, holds no lock and is never waited for by the one who retires.
// The scheme is Fraser's (Practical lock-freedom, 2004, section 5.2.3), with
// one list for each handle and the blocks of all epochs in it.
//
// # Protocol
//
// There is one global epoch, from 1 upwards, and one word for each handle:
// the epoch it has pinned, 0 = none. All of these are sync/atomic variables.
//
//	Pin      (P1) e := global; (P2) word := e; (P3) unless global == e, again
//	Unpin    (U)  word := 0
//	unlink   (L)  an atomic write after which no pin that begins can reach b
//	Retire   (R)  r := global, after L; keep (b, r)
//	advance  (A1) g := global; (A2) take the list of handles;
//	         (A3) read every word; one that is neither 0 nor g: give up;
//	         (A4) compare-and-swap global from g to g+1
//	free     (F)  b, after reading a global ≥ r+2
//
// Claim: no pin that can hold b is still there at F, and all its reads happen
// before F.
//
// Proof. Atomic operations of Go behave as if executed in one total order that
// agrees with the order in each goroutine. "Before" refers to it.
//
// (1) While a handle is pinned at e, that is from its last P2 to U, global is
// e or e+1. P1 before P2 and P3 after it read e, and global never falls, so it
// is e at P2. To make it e+2, some advance reads e+1 at A1, which is after P2;
// its A2 and A3 follow, so it finds the handle, which was registered before
// P2, and reads its word after P2: as e is neither 0 nor e+1, it gives up,
// unless U came first. (An advance from e to e+1 may miss the pin, because its
// A3 came before P2. That is the reason for waiting two epochs.)
//
// (2) If a pin at e can hold b, its P3 is before L: one that began after L
// cannot reach b. L is before R, so r ≥ e. By (1) global is at most e+1 ≤ r+1
// until U. So a global ≥ r+2, as F requires, exists only after U.
//
// (3) The advance from e+1 to e+2 has read, at A3, the 0 of U or a later value
// of the same word. An atomic read that sees the effect of an atomic write is
// synchronised after it, and a later write to the word is by the handle's next
// user, who is ordered after the former. So U, and with it every plain read of
// the pin, happens before that A3, its A4, the read of global at F, and the
// free and reuse of b: no data race either. ∎
//
// A handle that is not pinned has the word 0 and holds back nothing, however
// long it idles. Unreachable in L means from every block that is still
// reachable: whoever unlinks a chain retires no block of it that a reachable
// block points to.
//
// # Reclamation
//
// A handle's blocks wait in a ring of plain words in the order of retirement,
// which is the order of their epochs. Retire frees up to four blocks that are
// due, so a backlog shrinks and no single call pays for it; every so many
// calls it tries to advance the epoch. So one active handle alone reclaims
// its own blocks. Reclaim, which a background goroutine calls now and then,
// advances, frees what is due in the rings of all handles, the idle ones
// included, and runs deferred functions. Each ring has a mutex for that; it is
// never held while a block is freed.
//
// Where invariants.Enabled, nested pins and unpins without a pin are reported.
package epoch
