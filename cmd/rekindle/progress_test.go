package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgressIsThinnedOutButShowsTheEnd(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(streams{err: &out, terminal: true})
	for i := range int64(1001) {
		p.show("loading row", i, 1000)
	}
	p.show("checking round", 1, 5)
	p.clear()
	shown := out.String()
	require.Less(t, strings.Count(shown, "loading row"), 100)
	require.Contains(t, shown, "loading row 0 of 1000")
	require.Contains(t, shown, "loading row 1000 of 1000")
	require.Contains(t, shown, "checking round 1 of 5")
	require.True(t, strings.HasSuffix(shown, "\r\x1b[K"))
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(streams{err: &out})
	p.show("loading row", 1, 0)
	p.clear()
	require.Empty(t, out.String())
}
