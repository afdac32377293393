//go:build !chainindex && !mirrorindex && !iacow && !rebuild

package rekindle

import (
	"github.com/rekindledb/rekindle/chainindex"
	"github.com/rekindledb/rekindle/iacow"
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/rebuild"
	"github.com/rekindledb/rekindle/mirrorindex"
)

func strategies() []index.Strategy {
	return []index.Strategy{iacow.Strategy{}, chainindex.Strategy{}, mirrorindex.Strategy{}, rebuild.Strategy{}}
}
