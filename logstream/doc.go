// Package logstream is the log. The log is the database: a commit is durable
// when its records are in the log, and a row that is not in memory is read from
// there.
//
// # Structure
//
//	Log            the sequencer: commit order, rounds, visible and durable marks
//	  Stream       where rounds are kept; segmentStream keeps them in files
//	    source     reads segment files
//	Scan           delivers the groups of a log, live or at rest
//	  decoder      one stream: bytes to verified rounds
//	  merger       all streams: rounds in order, complete ones only
//	  assembler    frames to groups
//	  evidence     torn end or damage
//	Secure         what was read may be in the page cache only: makes it durable
//
// # Words
//
//	position   byte position in a stream; logical, never restarts
//	segment    file of fixed size; position p lies in the one at p &^ (size-1)
//	round      what one flush makes durable; numbered over all streams
//	frame      a transaction's records, or one part of them
//	group      a transaction: one frame, or all parts
//	CTS        commit timestamp: the number of a frame in the commit order; a
//	           group has that of its last frame
//	address    stream, position and size class of a record in 64 bits
//
// incarnation: the life of a log from the first commit after Open to the end of
// the process.
//
// # Format
//
//	segment   | header, 512 or 1024 | round | round | ... | zeros |
//	round     | header, 72 + 8 per stream | frame | frame | ... | zeros to 512 |
//	frame     | header, 40 | record | record | ... |
//	record    | header, 24 | old keys | payload | zeros to 8 |
//
//	segment header               round header              frame header
//	  0   8 magic                   0 4 magic                 0 8 checksum
//	  8   4 format version          4 4 bytes of frames       8 4 bytes of the frame
//	 12   4 bytes of the header     8 8 checksum             12 4 records
//	 16  16 database id            16 8 incarnation          16 4 part, from 1
//	 32   1 stream                 24 8 salt                 20 4 parts
//	 33   1 streams                32 8 round                24 8 CTS
//	 34   2 flags                  40 8 participants         32 8 CTS of part 1
//	 40   8 bytes of a segment     48 8 first CTS
//	 48   8 first position         56 8 last CTS           record
//	 56   8 incarnation            64 1 stream                0 4 checksum
//	 64   8 salt                   65 1 streams               4 4 bytes, unpadded
//	 72   8 previous salt          72 8 end, per stream       8 8 RowID
//	 80   8 end before                                       16 1 kind
//	 88   8 first round                                      17 1 flags
//	 96   8 first CTS                                        18 2 schema version
//	104   8 seal, per stream                                 20 4 bytes of keys
//	end-8 8 checksum                                         24   keys, payload
//
// docs/format/log.md is the full description, with the formulas of the
// checksums; testdata/format.txt a log with every byte explained.
//
// # Writing
//
// Reserve gives a frame its CTS, its round and its position under one latch, and
// closing a round is a step under the same latch. So every CTS of a round is
// below every CTS of the next one, in all streams. The committer then encodes
// the frame into the round's buffer, beside the others, and publishes it.
// Visible is the CTS up to which all are published.
//
// A round is flushed by one of those who wait for it (leader commit): it closes
// the round, waits until Visible reaches its last CTS, which means that nobody
// copies into it any more, writes it to all participants and syncs them. One
// flush runs at a time. Invariants:
//
//   - A CTS is given only for a place whose space is already on disk. No CTS is
//     taken by a request that fails.
//   - Round r+1 is written when r is durable in all its streams, not before. So
//     at most one round, of at most MaxRoundBytes a stream, is written and not
//     durable, and the header of r+1 proves that r is.
//   - Durable <= Visible. An address may be read when its CTS is durable.
//   - Buffered and not durable is at most MaxUnflushed a stream, and one frame
//     more: Reserve waits, and flushes, at that bound.
//   - After a failed write or sync nothing is written, and Durable stays.
//
// Space is prepared ahead with zeros by a goroutine of its own; see space.go
// for how much. An error there fails no commit, but a sync that fails on a file
// with data in it counts as a failed flush.
//
// # Reading at rest
//
// The log ends before the first round that is not valid in each of its
// participants. The headers of later rounds and segments tell where the data
// ended before them, durably; a place before such a position that does not
// decode is damage, not the end (evidence.go). Since one round at most was in
// flight, the search for them is bounded by MaxRoundBytes and the header of
// the next segment.
//
// Open changes nothing. The first Reserve begins an incarnation: a segment in
// each stream whose header says where the data ended, durable before the first
// round. What a dead incarnation left behind the ends is dead from then on; its
// checksums do not validate in any other incarnation either.
//
// # Sources
//
// Group commit with a leader is that of InnoDB and of many others; indexed
// logging and addresses in slots are from HiEngine (SIGMOD'22); logging in
// parallel streams with epochs (here rounds) from SiloR (OSDI'14).
package logstream
