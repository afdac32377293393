// Package overhead measures what checkpoints cost while work goes on, by index
// strategy and number of rows.
//
// # Procedure
//
// For each strategy and size a process of its own loads the table of package
// dataset and takes the first checkpoint, which is a full one. Then it times
// incremental ones: each after inserting as many rows as a thousandth of those
// loaded, into one hundredth of the key space, which touches about that share of
// an index's leaves.
//
// After a slice of work to warm up it goes through pairs of slices, one without
// and one with checkpoints, in turns first and second (off on, on off, off on,
// …), so that drift cancels. A checkpoint before each slice gives both the same
// start. In a slice with checkpoints one begins every so often, the first after
// half of that time; without a pause one follows the other.
//
// A transaction reads a few random rows and changes one: four of five update a
// random row, the fifth inserts a row and deletes the oldest one of those that
// its client owns, so the number of rows stays and the indexes change. Its latency is that of the whole
// rekindle.DB.Update, the wait for the disk included.
//
// # What is measured
//
// The field "checkpoints" says under which condition. "off" and "on" are the two
// kinds of slices; "running" are those parts of slices with checkpoints in which
// one ran, and the transactions that overlap them:
//
//	tx_s             transactions a second
//	commit_p50_us    latency of a transaction; also p99 and p999
//	index_mb         most memory of the indexes, as the engine reports it
//	tx_loss_pct      throughput lost against the other slice of the pair
//	commit_p99_ratio p99 against that of the other slice
//
// "full" and "incremental" are the checkpoints of the quiet database, "on" those
// of the slices:
//
//	ckpt_mb          bytes of the files that the checkpoint wrote
//	ckpt_index_mb    those of indexes
//	ckpt_ms          how long it took
//
// peak_rss_mb, "on", is the most memory that the process had. The series
// timeline_tx_s has the transactions a second for each 100 ms, at_s being the
// window's end, counted from the start of the first slice, and
// timeline_ckpt the share of the window in which a checkpoint ran. Values are
// medians over the pairs. 1 MB is 2^20 bytes. Tail, cold and stop mean nothing
// here and are 0, false and "close".
package overhead
