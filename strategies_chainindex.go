//go:build chainindex

package rekindle

import (
	"github.com/rekindledb/rekindle/chainindex"
	"github.com/rekindledb/rekindle/index"
)

func strategies() []index.Strategy { return []index.Strategy{chainindex.Strategy{}} }
