package bench

import (
	"encoding/json"
	"io"
)

// Metric is one measured value.
type Metric struct {
	Name     string  `json:"name"`     // path of what was measured, such as "demo/round=1/open"
	Strategy string  `json:"strategy"` // index strategy of the database
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
}

// WriteJSON writes one object a line.
func WriteJSON(w io.Writer, metrics []Metric) error {
	enc := json.NewEncoder(w)
	for _, m := range metrics {
		if err := enc.Encode(m); err != nil {
			return err
		}
	}
	return nil
}
