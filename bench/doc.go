// Package bench holds what the workloads below it share: the form of a result
// and what they want of the engine beyond its public calls.
//
// tpcc is the TPC-C workload, tpcc/demo kills it and looks at what comes back;
// counters is a workload whose whole content can be computed, torture kills both
// where it hurts, the module bench/losingfs with power cuts. micro measures single
// operations. The module bench/peers runs micro on other stores.
package bench
