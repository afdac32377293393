//go:build mirrorindex

package rekindle

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/mirrorindex"
)

func strategies() []index.Strategy { return []index.Strategy{mirrorindex.Strategy{}} }
