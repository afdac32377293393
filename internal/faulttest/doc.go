// Package faulttest runs a procedure with a fault of the file system at
// operation n, for every n, until it passes without one.
//
// A Plan says which operations fail, how, and how often. A Disk is a vfs.Mem
// that follows a plan while it is armed, and that takes the power cuts that
// could come in the moment of the fault. A Witness collects everything that
// the code under test says, so that Unreported finds the faults that went
// unnoticed:
//
//	matrix := faulttest.Matrix{Stride: 1, Try: try}
//	counts, err := matrix.Run(ctx)
//
// # Reported
//
// A fault is reported if its error
//
//   - is in the chain of an error that a call returned, or that a field of a
//     result holds, and was given to Witness.Note; or
//   - appears in a record of the Logger with level Warn or above.
//
// BestEffort lists the operations that may fail in silence. Of a file that cannot be
// read one such error is enough.
package faulttest
