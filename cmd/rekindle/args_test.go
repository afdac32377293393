package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDoubleDashes(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{nil, []string{}},
		{[]string{"demo", "-warehouses", "2", "-json"}, []string{"demo", "--warehouses", "2", "--json"}},
		{[]string{"demo", "--warehouses=2", "--json"}, []string{"demo", "--warehouses=2", "--json"}},
		{[]string{"-seconds=1.5"}, []string{"--seconds=1.5"}},
		{[]string{"-h"}, []string{"-h"}},
		{[]string{"-help"}, []string{"--help"}},
		{[]string{"-seed", "-5", "-x", "-.5"}, []string{"--seed", "-5", "-x", "-.5"}},
		{[]string{"-json", "--", "-json"}, []string{"--json", "--", "-json"}},
		{[]string{"-", ""}, []string{"-", ""}},
	} {
		require.Equal(t, c.want, doubleDashes(c.in), "%q", c.in)
	}
}
