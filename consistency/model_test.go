package consistency

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

const registers = 5

// Operation is a transaction on registers: it reads some, and then writes unless
// the first one that it read differs from If. A value of 0 stands for no row.
type Operation struct {
	Reads  []int
	Writes map[int]int64
	If     *int64
}

// Outcome is what an operation read; nil if nobody knows.
type Outcome []int64

type state [registers]int64

func (s state) step(op Operation, out Outcome) (bool, state) {
	for i, r := range op.Reads {
		if out != nil && out[i] != s[r] {
			return false, s
		}
	}
	if op.If != nil && s[op.Reads[0]] != *op.If {
		return true, s
	}
	for r, value := range op.Writes {
		s[r] = value
	}
	return true, s
}

// model describes registers. If no operation is on many of them, each register has
// a history of its own, which is much less work.
func model(many bool) porcupine.Model {
	m := porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) { return s.(state).step(in.(Operation), out.(Outcome)) },
	}
	if !many {
		m.PartitionEvent = byRegister
	}
	return m
}

func byRegister(events []porcupine.Event) [][]porcupine.Event {
	parts := make([][]porcupine.Event, registers)
	registerOf := map[int]int{}
	for _, e := range events {
		if op, is := e.Value.(Operation); is {
			registerOf[e.Id] = op.register()
		}
		r := registerOf[e.Id]
		parts[r] = append(parts[r], e)
	}
	return parts
}

// register is the only one that the operation is on.
func (op Operation) register() int {
	for r := range op.Writes {
		return r
	}
	return op.Reads[0]
}

// history is a sequence of beginnings and ends. The zero value is empty.
type history struct{ events []porcupine.Event }

func (h *history) call(id, client int, op Operation) {
	h.events = append(h.events, porcupine.Event{ClientId: client, Kind: porcupine.CallEvent, Value: op, Id: id})
}

func (h *history) end(id, client int, out Outcome) {
	h.events = append(h.events, porcupine.Event{ClientId: client, Kind: porcupine.ReturnEvent, Value: out, Id: id})
}

// serial is one operation after the other.
func serial(steps ...any) (h history) {
	for i := 0; i < len(steps); i += 2 {
		h.call(i, 0, steps[i].(Operation))
		h.end(i, 0, steps[i+1].(Outcome))
	}
	return h
}

func put(r int, value int64) Operation { return Operation{Writes: map[int]int64{r: value}} }
func get(r ...int) Operation           { return Operation{Reads: r} }

func TestModel(t *testing.T) {
	seven := int64(7)
	swap := Operation{Reads: []int{1}, Writes: map[int]int64{1: 8}, If: &seven}
	for name, c := range map[string]struct {
		history
		legal bool
	}{
		"read":             {serial(get(1), Outcome{0}, put(1, 7), Outcome{}, get(1, 2), Outcome{7, 0}), true},
		"stale read":       {serial(put(1, 7), Outcome{}, get(1), Outcome{0}), false},
		"delete":           {serial(put(1, 7), Outcome{}, put(1, 0), Outcome{}, get(1), Outcome{0}), true},
		"deleted row":      {serial(put(1, 7), Outcome{}, put(1, 0), Outcome{}, get(1), Outcome{7}), false},
		"swap":             {serial(put(1, 7), Outcome{}, swap, Outcome{7}, get(1), Outcome{8}), true},
		"no swap":          {serial(swap, Outcome{0}, get(1), Outcome{0}), true},
		"wrong swap":       {serial(swap, Outcome{0}, get(1), Outcome{8}), false},
		"unknown write":    {serial(put(1, 7), Outcome(nil), get(1), Outcome{7}), true},
		"half transaction": {serial(Operation{Writes: map[int]int64{1: 7, 2: 7}}, Outcome{}, get(1, 2), Outcome{7, 0}), false},
	} {
		require.Equal(t, c.legal, porcupine.CheckEvents(model(true), c.events), name)
	}
	var h history // two reads at the same time as a write that disagree about it, one after the other
	h.call(1, 1, put(1, 7))
	h.call(2, 2, get(1))
	h.end(2, 2, Outcome{7})
	h.call(3, 3, get(1))
	h.end(3, 3, Outcome{0})
	h.end(1, 1, Outcome{})
	require.False(t, porcupine.CheckEvents(model(true), h.events))
}
