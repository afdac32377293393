//go:build amd64 || arm64

package prefetch

import "unsafe"

// Lines asks for n lines, the first being that of p.
//
//go:noescape
func Lines(p unsafe.Pointer, n int)
