// Package peers compares the B+tree with the in-memory B-trees that Go programs
// use, in one run. It is a module of its own, so that what it compares with is
// no dependency of the engine.
//
//	go test -bench . -benchtime 2s -keys 10000000
//
// Keys are 8 random bytes, values a row; the peers have string keys and a
// sync.RWMutex around them, since they are not safe for concurrent use. Next to
// the time on the wall each benchmark reports processor time, collector
// included, which other programs on the machine disturb less.
package peers
