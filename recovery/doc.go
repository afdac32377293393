// Package recovery brings a database back and writes the checkpoints that make
// this quick.
//
// # Open
//
//	lock → manifest → map array files → replay the tail → secure it
//
// Nothing is read in full but the tail: the array's pages and the index files
// are mapped and verified on first touch. The tail is replayed in commit
// order; a record sets its row's slot to its own log address, so no row is
// materialised and replaying twice changes nothing. A relocation does so only if
// the slot holds the address that it replaces. The only write is that of
// the tail's last bytes in place, which may exist in the page cache only.
// A failed or cancelled Open changes no byte; a crash inside it is repeated.
//
// If the newest checkpoint is damaged, the one before it and its longer tail
// serve, and the report says so. If both are, Open refuses.
//
// # Checkpoint
//
// A checkpoint describes the database at TSc, the last commit timestamp of the
// newest durable round. A snapshot registered at TSc holds the watermark back
// until the checkpoint is published. The array part is a fold: the log between
// the previous TSc and this one is applied to the previous array file with the
// code that recovery uses, so its cost follows the changes and it touches
// nothing of the running engine. The first checkpoint scans the slots instead
// and takes the log address of the version visible at TSc. Both ways give the
// same array; builds with invariants compare them.
//
// Then one manifest record names all files, with sizes and checksums, TSc and
// the replay positions; once it is durable the checkpoint exists. Before,
// it does not, and its files are garbage. The last two are kept.
package recovery
