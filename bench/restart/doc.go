// Package restart measures what a restart takes, by index strategy, number of
// rows and length of the log's tail.
//
// # Procedure
//
// For each strategy and size one process loads the table of package dataset,
// with checkpoints on the way and one at the end, and closes it. For each tail
// another process opens the database, checkpoints it if need be, and commits so
// many updates and inserts durably, one in each transaction; then it is killed
// with SIGKILL while it goes on writing, or closes the database. A kill
// therefore leaves slightly more than the tail asked for; nothing is written if
// no tail is.
//
// Each run is then a fresh process that opens what was left, reads, and is
// killed in turn. It writes no transaction, so all runs find the same state.
// The time it takes to start a process is not counted, and it reads its own
// program before, so that a cold cache means cold data.
//
// # What is measured
//
// All times count from the call of rekindle.Open:
//
//	open_ms        until it returns
//	first_read_ms  until the first transaction has read a random row
//	reads_10k_ms   until 10,000 have, one after the other
//	steady_s       until the end of the first window of 100 ms whose median read
//	               takes at most 1.2 times the final one, which is the median over
//	               the last ten windows
//
// Reading goes on for a time given, one transaction a read, random rows. What a
// process has used is looked at after the 10,000th read, and the peak of its
// memory at the end as well:
//
//	peak_rss_mb    most memory resident at any time, file pages included
//	open_rss_mb    the same until the 10,000th read
//	mapped_mb      address space that maps files of the database
//	read_mb        what came from the storage device, for mapped pages, too
//	read_calls_mb  what read system calls returned, from the cache or not
//	index_mb       memory of the indexes as the engine reports it
//
// and from the recovery report:
//
//	replayed          records of the tail
//	tail_mb           bytes of the tail
//	entries_replayed  index entries added from the tail
//	rows_scanned      rows read to rebuild indexes
//	indexes_rebuilt   indexes made anew
//	fallbacks         what was damaged and replaced; not 0 spoils a result
//	open_index_ms     the part of open_ms that went into indexes
//	phase_…_ms        each phase of it, and "other" for the rest of open_ms
//
// Two series have a value for each window, at_s being its end: reads_s, reads a
// second, and read_p50_us, the median read if there was any. Values are medians
// over the runs. 1 MB is 2^20 bytes.
package restart
