// Package peers runs the workload of bench/micro on other embedded stores and
// on Rekindle, in one run and with the same benchmark names. It is a module of
// its own because of what the stores depend on; SQLite needs cgo.
//
//	cd bench/peers && go test -run '^$' -bench Store -timeout 2h
//
// What each store is asked for is what its documentation gives for speed at the
// same promises: a commit that returns is on disk (durable), or is in the
// store's hands (not durable).
package peers
