// Package mapfile has what files need that are written once, read back before
// anything names them, and from then on read through a mapping.
package mapfile
