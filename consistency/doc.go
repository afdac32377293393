// Package consistency checks histories of the engine with porcupine, which tests
// whether they are linearizable. It is a module of its own, for the sake of that
// dependency, and uses the engine as any program does.
//
// Clients work on a few registers in a process that is killed again and again.
// Every operation is a line before it begins and a line after it has ended, on a
// pipe; the order of the lines is the order of time that the checker goes by. An
// operation that was under way when the process died may have happened or not.
//
// Snapshot isolation makes operations on a single register linearizable, and also
// transactions on several ones if each writes all that it reads or writes nothing:
// the histories here are of those. What snapshot isolation does not promise is the
// business of package isolationtest.
package consistency
