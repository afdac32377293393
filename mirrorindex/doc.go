// Package mirrorindex is the index strategy MirrorIndex.
package mirrorindex
