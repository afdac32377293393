// Package indextest is the conformance suite of index strategies: everything
// that package index promises and that can be seen from outside, checked
// against a model, a sorted slice.
//
// A strategy runs it from its own tests:
//
//	func TestConformance(t *testing.T) { indextest.Run(t, chainindex.Strategy{}) }
//
// Indexes of a persistent strategy are checkpointed and reopened as well. Every
// case prints its seed; INDEXTEST_SEED repeats it.
package indextest
