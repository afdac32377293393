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
		p.show("loading", i, 1000)
	}
	p.show("checking", 1, 5)
	p.clear()
	shown := out.String()
	require.Less(t, strings.Count(shown, "loading"), 100)
	require.Contains(t, shown, "loading 0 of 1000 (0 %)")
	require.Contains(t, shown, "loading 1000 of 1000 (100 %)")
	require.Contains(t, shown, "checking 1 of 5 (20 %)")
	require.True(t, strings.HasSuffix(shown, "\r\x1b[K"))
}

func TestProgressIsForTerminalsOnly(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(streams{err: &out})
	p.show("loading", 1, 0)
	p.clear()
	require.Empty(t, out.String())
}
