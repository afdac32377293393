// Package prefetch asks the processor for memory that will be needed soon. A
// prefetch is not an access: it never faults, has no result, orders nothing and
// does not make the processor wait, so many of them overlap where loads in a
// loop would fill its window of instructions. Where there is no such instruction
// nothing happens.
package prefetch

// LineBytes is the size of what one prefetch brings.
const LineBytes = 64
