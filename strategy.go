package rekindle

import "github.com/rekindledb/rekindle/index"

// strategies, the index strategies of this build with the default one first, are
// chosen by build tags: chainindex, mirrorindex, iacow or rebuild compiles in
// that one alone; without such a tag all are there. See strategies_*.go.

// IndexStrategies returns the names of the index strategies of this build, each
// a value for Options.IndexStrategy. The first is the default for new databases.
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
