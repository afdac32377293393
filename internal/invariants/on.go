//go:build invariants || race

package invariants

// Enabled is true in builds with the invariants tag or the race detector.
// Use it to add checks, never to choose another code path: production paths
// must be the tested ones.
const Enabled = true
