package mirrorindex

import (
	"testing"

	"github.com/rekindledb/rekindle/index/indextest"
)

func TestConformance(t *testing.T) { indextest.Run(t, Strategy{}) }
