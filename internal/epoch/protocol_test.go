package epoch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// protocol is a state of the protocol in the package documentation with one
// reader, one block, one writer and two goroutines that advance. Each step is
// one atomic operation.
type protocol struct {
	global, word  uint8
	reader        step
	epoch         uint8 // that the reader has read at P1
	writer        step
	retired       uint8 // r
	advancer      [2]step
	seen          [2]uint8 // g
	linked, freed bool
}

type step uint8

const (
	atP1 step = iota // reader
	atP2
	atP3
	pinned
	holding

	atL step = iota // writer
	atR
	atF

	atA1 step = iota // advancer; it reads one word, so A2 is nothing
	atA3
	atA4
)

const lastEpoch = 7 // bounds the search

// successors are the states after one step of anyone, if blocks wait for the
// number of epochs.
func (p protocol) successors(wait uint8) []protocol {
	next := append(p.read(), p.write(wait)...)
	for i := range p.advancer {
		next = append(next, p.advance(i)...)
	}
	return next
}

func (p protocol) read() []protocol {
	q := p
	switch p.reader {
	case atP1:
		q.epoch, q.reader = p.global, atP2
	case atP2:
		q.word, q.reader = p.epoch, atP3
	case atP3:
		q.reader = pinned
		if p.global != p.epoch {
			q.reader = atP1
		}
	case pinned, holding:
		q.word, q.reader = 0, atP1 // unpin
		if p.reader == pinned && p.linked {
			h := p
			h.reader = holding
			return []protocol{q, h}
		}
	}
	return []protocol{q}
}

func (p protocol) write(wait uint8) []protocol {
	q := p
	switch {
	case p.writer == atL:
		q.linked, q.writer = false, atR
	case p.writer == atR:
		q.retired, q.writer = p.global, atF
	case p.global >= p.retired+wait:
		q.freed = true
	}
	return []protocol{q}
}

func (p protocol) advance(i int) []protocol {
	q := p
	switch p.advancer[i] {
	case atA1:
		q.seen[i], q.advancer[i] = p.global, atA3
	case atA3:
		q.advancer[i] = atA4
		if p.word != 0 && p.word != p.seen[i] {
			q.advancer[i] = atA1
		}
	case atA4:
		q.advancer[i] = atA1
		if p.global == p.seen[i] && p.global < lastEpoch {
			q.global++
		}
	}
	return []protocol{q}
}

// unsafeProtocol reports whether some interleaving frees the block under the reader.
// It tries them all.
func unsafeProtocol(wait uint8) (found bool, states int) {
	start := protocol{global: 1, linked: true, writer: atL, advancer: [2]step{atA1, atA1}}
	known := map[protocol]bool{start: true}
	for todo := []protocol{start}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		found = found || p.freed && p.reader == holding
		for _, q := range p.successors(wait) {
			if !known[q] {
				known[q] = true
				todo = append(todo, q)
			}
		}
	}
	return found, len(known)
}

func TestProtocolInAllInterleavings(t *testing.T) {
	found, states := unsafeProtocol(2)
	t.Logf("%d states", states)
	require.False(t, found, "two epochs are enough")
	found, _ = unsafeProtocol(1)
	require.True(t, found, "one epoch is not: the search can fail")
}
