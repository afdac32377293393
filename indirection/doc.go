// Package indirection is the indirection array: per table, from the ordinal of
// a row to one 64-bit word that says where the row's newest version is. It has
// two forms, a live Array in memory and an immutable Image in files (the
// dataless checkpoint of HiEngine, SIGMOD'22: addresses, no rows).
//
// # Words
//
//	0              empty
//	bit 63 clear   arena.Ref of a version in memory
//	bit 63 set     logstream.Address of a record
//
// An image holds only empty words and log addresses.
//
// # The live array
//
//	Array.dir ──> directory        one word a PIA, on the Go heap, replaced by
//	                │              larger copies
//	                v
//	              PIA block        128 page words, 1 KiB in the arena
//	                │
//	                v
//	              page             512 words, 4 KiB in the arena; or in a file
//
// A page word is 0, the page in the arena, "page of a base, not read yet", or
// "page of a base, checked" (see pagestate.go). A base is an image that the array
// reads pages from: the one that it was opened with, later that of the newest
// checkpoint. An array that was opened from an image begins without PIA blocks:
//
//	touch of a PIA        its directory chunk is checked, the block made
//	first read of a page  the page is checked, and stays in the file; one with a
//	                      patch is read as its base and its patch
//	first write           the page is copied into the arena, checked, and
//	                      published by CAS of the page word
//	new checkpoint        Rebase: pages in files become pages of its image
//	memory is short       Leave: pages in the arena become pages of the base
//
// So no byte of a file is trusted before it was checked as part of the present
// base. Nobody writes into a mapping.
//
// Invariants:
//
//   - A page that was found in the arena within a pin stays where it is until that
//     pin ends. So a writer that has found its page may use it without looking at
//     the page word again.
//   - Page words change by CAS. What is in a file has the words of the base, and so
//     of every newer image too, until it is written.
//   - A PIA block is entered into the directory once, under Array.mu, and stays.
//   - The high-water mark is raised before a word above it is written.
//   - The files of a base stay mapped while it is the newest one or a page word or
//     a reader may refer to it.
//
// Load, CompareAndSwap and Set take no lock once their page is in the arena.
// Their callers are pinned in the epoch domain, which keeps memory and files that
// they may be reading. Making a PIA block takes Array.mu, once in 65,536 rows.
//
// # How a page leaves memory
//
//	mark     (M1) compare the page's 512 words with the base;
//	         (M2) CAS the page word from "in the arena" to "leaving"
//	wait     (W)  until every pin that existed then has ended (epoch.Barrier)
//	leave    (L1) compare again, with the base checked; (L2) CAS the page word
//	         from "leaving" to "page of the base, checked"; (L3) retire the page
//	reader   reads the word where it is, in the arena or in the base
//	writer   (S1) reads the page word; if it is "leaving": CAS it back to "in the
//	         arena"; if the page is in a file: copies it into the arena first;
//	         (S2) CAS of the slot
//
// One goroutine at a time does this in an array (Array.leaving). If a comparison
// fails, or the wait does, the mark is taken back as by a writer.
//
// Claim: no write is lost: at L2 the page has the words of the base.
//
// Proof. Let L2 succeed. Then the page word was "leaving" from M2 to L2, because
// nobody but the marking goroutine makes it so. Take any S2 on this page of the
// arena. Its S1 found the page in the arena, or made it so. If S1 came after M2
// it has found "leaving" and has cancelled it, against what was assumed, or came
// after L2 and found another page. So S1 came before M2, within a pin that existed
// at W, so S2 came before the end of W and before L1. Hence no word of the page
// changes between L1 and L2, and L1 found all of them equal to the base. ∎
//
// Readers that found the page before L2 may go on reading it, because it is
// retired and their pins hold it; what they read is what the page had at L2, a
// moment within their call. A copy that a writer makes from the base cannot be
// stale: while that writer is pinned, no page can go into the arena and out of it
// again, because between the two there is a wait for its pin. For the same reason
// a CAS of a page word never meets a word that has come back.
//
// Who must not need memory for a write a second time, in another pin, holds the
// array's pages in between (Hold): the compaction of the log does, from the moment
// that it prepares its writes until they are made, as its records are durable by then.
//
// Nothing changes on disk, so a crash at any moment means nothing. A page that left
// has the mark stateWritten: the free slots of it are not free for FreeOrdinals, as
// the allocator knows them. Pages without rows leave too, into a word that names
// no file.
//
// # How another image becomes the base
//
// Rebase follows the publication of a checkpoint. A checkpoint that is abandoned
// changes nothing here. An array has two places for bases, and the words of pages
// in files say in which one theirs is.
//
//	(R1) every page in a file has in the new image the content that it has in the
//	     base, by the checksums and counts of both directories; else nothing is done
//	(R2) the base is entered in the free place, and is the newest one from now on:
//	     PIA blocks that were filled from the old one and not entered are filled again
//	(R3) each page word of the old base becomes "page of the new one, not read yet"
//	(R4) wait until every pin that exists now has ended; let go of the old base
//
// Leave excludes Rebase, so between R1 and R3 pages only go from files into the arena.
// After R3 no word refers to the old base, and a pin that begins then cannot find it;
// after R4 there is none that could have found it before. If the wait at R4 is
// given up the next Rebase begins with it.
//
// R1 cannot fail unless something is wrong: a slot whose word differs between two
// images was written by a commit between them. From the statement on it held that
// version or its address or a later one, and never the old word again: addresses do
// not recur, and an emptied slot waits for the watermark, which the snapshot of the
// checkpoint holds until Rebase is done. So its page was in the arena and could not
// leave: it was not as the base had it.
//
// # Images
//
// An image is the newest of a set of files, one a checkpoint (a generation),
// and up to seven older ones that hold pages it did not have to write again.
// docs/format/array.md describes every byte.
//
// A Builder makes the next generation from an image and the words that changed.
// For a changed page it writes a patch, which is cumulative: all slots that
// differ from the page's base, so a page is at most one base and one patch. More
// than 64 differing slots are written as a whole page. When more than eight
// files would be referred to, the pages of those with the fewest are written
// again. The bytes depend on nothing but the previous image and the changes.
//
// Checksums form a tree: the footer is checked when an image is opened, a
// directory chunk when a page below it is first used, a page by its entry in
// the directory when it is first used. Entries carry the checksum of the page
// as read, patch applied. So no stale or misplaced part is ever taken for valid.
// A fault in a mapping becomes fault.ErrCorrupt (package mapfile).
package indirection
