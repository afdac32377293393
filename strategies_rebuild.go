//go:build rebuild

package rekindle

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/rebuild"
)

func strategies() []index.Strategy { return []index.Strategy{rebuild.Strategy{}} }
