package bench

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMetricsAreOneObjectALine(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, []Metric{
		{Name: "demo/round=1/open", Strategy: "rebuild", Value: 1.5, Unit: "ms"},
		{Name: "demo/violations", Strategy: "rebuild", Unit: "1"},
	}))
	require.Equal(t, `{"name":"demo/round=1/open","strategy":"rebuild","value":1.5,"unit":"ms"}
{"name":"demo/violations","strategy":"rebuild","value":0,"unit":"1"}
`, out.String())
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

func TestMetricsReportAWriteError(t *testing.T) {
	full := errors.New("full")
	require.ErrorIs(t, WriteJSON(failing{full}, []Metric{{}}), full)
}
