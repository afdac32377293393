// Package chainindex is the index strategy ChainIndex.
package chainindex
