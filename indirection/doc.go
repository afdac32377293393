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
// A page word is 0, the page in the arena, "page of the base image, not read
// yet", or "page of a mapped file, checked" (see pagestate.go). An array that
// was opened from an image begins without PIA blocks:
//
//	touch of a PIA        its directory chunk is checked, the block made
//	first read of a page  the page is checked; one with a patch is put together
//	                      in the arena, another one stays in the file
//	first write           the page is copied into the arena, checked, and
//	                      published by CAS of the page word
//
// So what is checked once is never checked again, and no byte of a file is
// trusted before. Nobody writes into a mapping.
//
// Invariants:
//
//   - A page in the arena stays where it is until Close. So a writer that has
//     found its page may use it without looking at the page word again.
//   - Page words change by CAS: mapped, checked, arena, or 0, arena.
//   - A PIA block is entered into the directory once, under Array.mu, and stays.
//   - The high-water mark is raised before a word above it is written.
//   - A file stays mapped while a page word in state mapped or checked may
//     refer to it, and after that until the readers of that moment are gone.
//
// Load, CompareAndSwap and Set take no lock once their page is in the arena.
// Their callers are pinned in the epoch domain, which keeps files mapped that
// they may be reading. Making a PIA block takes Array.mu, once in 65,536 rows.
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
