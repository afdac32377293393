// Package counters is a workload whose content can be checked after any
// crash, for harnesses that kill processes and for crashes of simulated disks.
//
// Each worker counts its transactions in a row of its own. Everything that a
// transaction does follows from that number, so the whole content of the
// database follows from the counters: what was acknowledged must be counted,
// and what is counted must be there, entirely.
package counters
