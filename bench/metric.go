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
func WriteJSON[T Metric | Measurement](w io.Writer, lines []T) error {
	enc := json.NewEncoder(w)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
