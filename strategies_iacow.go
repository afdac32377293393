//go:build iacow

package rekindle

import (
	"github.com/rekindledb/rekindle/iacow"
	"github.com/rekindledb/rekindle/index"
)

func strategies() []index.Strategy { return []index.Strategy{iacow.Strategy{}} }
