// Package dataset is the table that the recovery and overhead benchmarks work
// on: a random 8-byte primary key, three more random numbers that may have
// indexes of their own, and a value, 100 bytes beside the key.
//
// A row is made from its number; numbers are counted from 0 and keys are spread
// evenly over 64 bits, so inserting by number is inserting in random order of
// keys, and whoever knows how many rows there are can read any of them.
package dataset
