//go:build !amd64 || race

package btree

// plainStores is false where ordinary stores could become visible before the
// latch that guards them (arm64's CAS without LSE does not order them), and
// under the race detector, which must see words that readers load atomically
// stored atomically.
const plainStores = false
