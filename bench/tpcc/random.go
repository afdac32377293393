package tpcc

import "math/rand/v2"

// The A of NURand (2.1.6) for last names, customer ids and item ids.
const (
	nuLast     = 255
	nuCustomer = 1023
	nuItem     = 8191
)

// Constants are the C of NURand, one for each A.
type Constants struct{ Last, Customer, Item int }

// LoadConstants draws the constants that the initial database is built with.
func LoadConstants(seed uint64) Constants {
	r := newRandom(seed, streamConstants)
	return Constants{Last: r.between(0, nuLast), Customer: r.between(0, nuCustomer), Item: r.between(0, nuItem)}
}

// RunConstants draws the constants for running transactions: that of the last
// names keeps the distance from the load's that 2.1.6.1 asks for, so that a
// run does not hit exactly the names that the load made frequent.
func RunConstants(seed uint64, load Constants) Constants {
	c := LoadConstants(seed)
	r := newRandom(seed, streamConstants+1)
	for !validDelta(load.Last, c.Last) {
		c.Last = r.between(0, nuLast)
	}
	return c
}

func validDelta(load, run int) bool {
	delta := max(load-run, run-load)
	return delta >= 65 && delta <= 119 && delta != 96 && delta != 112
}

// streamConstants separates the generators of constants from those of rows
// and terminals, which count up from 0.
const streamConstants = 1 << 40

// random draws the values of 2.1 and 4.3.2. It belongs to one goroutine.
type random struct{ *rand.Rand }

func newRandom(seed, stream uint64) random {
	return random{rand.New(rand.NewPCG(seed, stream))}
}

// between is uniform over both ends included.
func (r random) between(lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func (r random) int32(lo, hi int) int32 { return int32(r.between(lo, hi)) }

func (r random) percent(p int) bool { return r.IntN(100) < p }

// nuRand is the non-uniform distribution of 2.1.6.
func (r random) nuRand(a, c, lo, hi int) int {
	return ((r.between(0, a)|r.between(lo, hi))+c)%(hi-lo+1) + lo
}

const (
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	digits   = "0123456789"
)

func (r random) text(from string, lo, hi int) string {
	b := make([]byte, r.between(lo, hi))
	for i := range b {
		b[i] = from[r.IntN(len(from))]
	}
	return string(b)
}

// alpha is the a-string, number the n-string of 4.3.2.2.
func (r random) alpha(lo, hi int) string  { return r.text(alphabet, lo, hi) }
func (r random) number(lo, hi int) string { return r.text(digits, lo, hi) }

// data is 26 to 50 characters, one in ten with "ORIGINAL" in it (4.3.3.1).
func (r random) data() string {
	s := r.alpha(26, 50)
	if !r.percent(10) {
		return s
	}
	at := r.between(0, len(s)-len(original))
	return s[:at] + original + s[at+len(original):]
}

const original = "ORIGINAL"

func (r random) address() Address {
	return Address{
		Street1: r.alpha(10, 20),
		Street2: r.alpha(10, 20),
		City:    r.alpha(10, 20),
		State:   r.alpha(2, 2),
		Zip:     r.number(4, 4) + "11111",
	}
}

// lastName spells a number from 0 to 999 (4.3.2.3).
func lastName(n int) string {
	syllables := [...]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
	return syllables[n/100] + syllables[n/10%10] + syllables[n%10]
}
