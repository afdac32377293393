// Package demo runs TPC-C in a process of its own, kills that process with
// SIGKILL at a random moment, reopens the database and looks at what is there,
// for several rounds.
//
// The child writes a record to its standard output for every transaction,
// after its commit was acknowledged; the parent reads them to the end of the
// pipe, which outlives the child. So what the parent has read was acknowledged,
// and must be there after every later reopen. The last acknowledgements may be
// lost with the child, one a terminal: the database may hold that many more
// orders than were reported, and no more.
package demo
