// Package archtest holds tests of the source itself: which package may import
// which, and the habits that no other tool watches over. It exports nothing.
package archtest
