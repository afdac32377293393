package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rekindledb/rekindle"
)

// allStrategies stands for every index strategy of the build.
const allStrategies = "all"

func strategyFlag(cmd *cobra.Command, value *string, preset string) {
	cmd.Flags().StringVar(value, "strategy", preset, fmt.Sprintf("index strategy: %s, or %s", strings.Join(rekindle.IndexStrategies(), ", "), allStrategies))
}

// strategiesNamed returns the strategies that a flag names.
func strategiesNamed(name string) ([]string, error) {
	names := rekindle.IndexStrategies()
	if name == allStrategies {
		return names, nil
	}
	if !slices.Contains(names, name) {
		return nil, usageError{fmt.Errorf("strategy %q is not part of this build, which has %s", name, strings.Join(names, ", "))}
	}
	return []string{name}, nil
}
