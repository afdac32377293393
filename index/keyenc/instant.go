package keyenc

import "time"

// unixOfYear1 is the Unix time of 0001-01-01T00:00:00Z, the zero time.Time.
const unixOfYear1 = -62135596800

// Instant is a time.Time as it is stored: seconds since the beginning of year
// 1 in UTC and nanoseconds within the second. This is the range of time.Time
// itself, so every time.Time has an Instant, the two orders agree, and the
// zero time.Time is the zero Instant. (Unix seconds would wrap for the first
// two thousand years of that range.)
type Instant struct {
	Sec  int64
	Nsec uint32 // < MaxNsec
}

// MaxNsec is the number of nanoseconds in a second.
const MaxNsec = 1_000_000_000

// InstantOf returns the instant of t.
func InstantOf(t time.Time) Instant {
	return Instant{Sec: t.Unix() - unixOfYear1, Nsec: uint32(t.Nanosecond())}
}

// Time returns the instant in UTC.
func (i Instant) Time() time.Time {
	return time.Unix(i.Sec+unixOfYear1, int64(i.Nsec)).UTC()
}
