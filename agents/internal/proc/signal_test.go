package proc

import (
	"os"
	"os/signal"
	"syscall"
)

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func notifyTerm(ch chan os.Signal) { signal.Notify(ch, syscall.SIGTERM) }
