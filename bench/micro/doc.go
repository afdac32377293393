// Package micro measures single operations on any ordered store of 8-byte keys
// and 100-byte values: loading, reads, scans, durable and other updates, memory
// and recovery after a SIGKILL.
//
// Run drives the benchmarks and Serve is the other process of the recovery
// benchmark. A System says how to open a store. Rekindle is one; the module
// bench/peers adds others and runs all of them with the same names, so that
// ratios come from one run:
//
//	go test -bench Store -run '^$' ./bench/micro
//	cd bench/peers && go test -bench Store -run '^$'
//
// Benchmark names are Store/rows=…/store=…/operation/…; loading is done once
// for each pair of rows and store, and only if a selected benchmark needs it.
// REKINDLE_BENCH_ROWS sets the numbers of rows, 1,000,000 unless said, as in
// "1000000,10000000".
package micro
