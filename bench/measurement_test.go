package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeasurementsAreOneObjectALine(t *testing.T) {
	base := Measurement{Bench: "recovery", Metric: Metric{Strategy: "rebuild"}, Rows: 1000, Tail: 10, Stop: "kill"}
	series := base
	series.At = 0.1
	lines := []Measurement{base.With("open_ms", "ms", 3, 1, 2), series.With("reads_s", "1/s", 5)}
	var out bytes.Buffer
	require.NoError(t, WriteJSON(&out, lines))
	require.Equal(t, `{"bench":"recovery","name":"open_ms","strategy":"rebuild","value":2,"unit":"ms","rows":1000,"tail":10,"cold":false,"stop":"kill","runs":3,"min":1,"max":3}
{"bench":"recovery","name":"reads_s","strategy":"rebuild","value":5,"unit":"1/s","rows":1000,"tail":10,"cold":false,"stop":"kill","at_s":0.1,"runs":1,"min":5,"max":5}
`, out.String())

	back, err := ReadMeasurements(&out)
	require.NoError(t, err)
	require.Equal(t, lines, back)
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2.5, Measurement{}.With("", "", 1, 4, 2, 3).Value, 0)
	require.InDelta(t, 7, Measurement{}.With("", "", 7).Value, 0)
}

func TestMeasurementsThatAreNone(t *testing.T) {
	for _, text := range []string{`{"bench":"recovery"}{"nonsense":1}`, `{"bench":`, `[]`} {
		_, err := ReadMeasurements(strings.NewReader(text))
		require.Error(t, err, text)
	}
	none, err := ReadMeasurements(strings.NewReader(""))
	require.NoError(t, err)
	require.Empty(t, none)
}
