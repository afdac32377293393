// Package torture kills processes that work on a database, at moments that hurt
// and again and again, and compares what is left with what it must be.
//
//	Run       the parent: plans, kills, keeps the ledger
//	  victim  one process to be killed
//	Serve     the children: a life, the load of TPC-C, a check
//
// # A round
//
// A child opens the database and runs a workload on it with several clients,
// while it checkpoints, compacts and at last closes. It tells each
// acknowledged transaction and each phase that it enters on its standard output.
// The parent kills it with SIGKILL some time after it has entered the phase that
// the round aims at. Before that, children are killed that are still recovering,
// several in a row. Then another child, which is not killed before it is done,
// recovers the database and checks it against the ledger: read-only first, then
// as the next life will find it.
//
// # The ledger
//
// The parent knows from the pipe, which outlives the child, what was
// acknowledged. From that follows what must be there:
//
//   - With durable commits, each acknowledged transaction.
//   - With relaxed ones, each transaction acknowledged before the child began to
//     wait for the disk, once that wait is over; or before a Close that returned.
//   - What a check has found, because recovery makes durable what it serves.
//   - Nothing else, but for the one transaction that each client of each child may
//     have committed without living to tell.
//
// And whatever is there is there entirely: package counters computes the whole
// content from its counters, package tpcc has the consistency conditions of the
// standard, and every index is compared with its table.
//
// # Power cuts
//
// A process that is killed leaves what it wrote to the page cache. Config.PowerCut
// lets the caller take that away too, between two processes: see package
// losingfs.
//
// # Replaying
//
// What is chosen follows from the seed: the databases, the options, the phases
// aimed at and how far into them. When the kill really comes does not, nor how
// the clients are scheduled.
package torture
