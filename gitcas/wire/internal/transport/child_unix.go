//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, which is killed as a
// whole: git starts helpers of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
