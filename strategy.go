package rekindle

import (
	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/rebuild"
)

// strategies are the index strategies of this build.
func strategies() []index.Strategy {
	return []index.Strategy{rebuild.Strategy{}}
}

// IndexStrategies returns the names of the index strategies of this build, each
// a value for Options.IndexStrategy.
func IndexStrategies() []string {
	var names []string
	for _, s := range strategies() {
		names = append(names, s.Name())
	}
	return names
}

func strategyNamed(name string) (index.Strategy, error) {
	for _, s := range strategies() {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, invalidOption("IndexStrategy %q is not part of this build", name)
}
