//go:build amd64 && !race

package btree

// plainStores says that node words may be written by ordinary stores under the
// latch: amd64 keeps the order of stores, and no race detector looks on.
const plainStores = true
