package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when the parent is gone, and
// keeps a terminal's Ctrl-C away from it: the parent answers that.
//
// The signal is tied to the thread that starts the child. The Go runtime ends
// a thread only with a goroutine that is locked to it, so that lasts as long
// as the process.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
