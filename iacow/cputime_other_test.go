//go:build !unix

package iacow

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
