package app

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/united-workforce/uwf/engine/lease"
)

// Identity names the job that this process is: a CI run and its attempt where the
// environment says so (GITHUB_RUN_ID, GITHUB_RUN_ATTEMPT), else a random id of
// its own. It is the same whenever one process asks.
func (f *Factory) Identity() (lease.Identity, error) {
	return f.who.findOnce(func() (lease.Identity, error) { return findIdentity(f) })
}

func findIdentity(f *Factory) (lease.Identity, error) {
	who := lease.Identity{Attempt: 1, PIDNS: ownPIDNS(), PID: os.Getpid(), Alive: isAlive}
	who.Started, _, _ = startOf(who.PID) // 0: not known
	ask := f.Machine
	if ask == nil {
		ask = thisMachine
	}
	var err error
	if who.Host, who.Boot, err = ask(); err != nil {
		return who, fmt.Errorf("ask for this machine's name: %w", err)
	}
	if who.Run = f.Getenv("GITHUB_RUN_ID"); f.Job != nil && f.Job.Run != "" {
		who.Run = f.Job.Run
	}
	if who.Run == "" {
		var b [8]byte
		if _, err := io.ReadFull(f.Rand, b[:]); err != nil {
			return who, fmt.Errorf("make an id for this run: %w", err)
		}
		who.Run = "local-" + hex.EncodeToString(b[:])
		return who, nil
	}
	if who.Job = f.Getenv("GITHUB_JOB"); f.Job != nil {
		who.CIRun = f.Job.CIRun
	}
	if v := f.Getenv("GITHUB_RUN_ATTEMPT"); v != "" {
		if who.Attempt, err = strconv.Atoi(v); err != nil || who.Attempt < 1 {
			return who, Usagef("GITHUB_RUN_ATTEMPT is %q: a number from 1 is expected", v)
		}
	}
	return who, nil
}

func thisMachine() (host, boot string, err error) {
	host, err = os.Hostname()
	return host, bootID(), err
}

// bootID tells one boot of this machine from another; empty where the system
// doesn't say.
func bootID() string {
	id, _ := readLine("/proc/sys/kernel/random/boot_id", "")
	return id
}

// NextIdentity is the identity of the next step of this process. A CI run keeps
// its own; a made-up one is made anew, so that each step has its own run. The steps
// of a Job are counted, so that each has the same run in every re-run of the job.
func (f *Factory) NextIdentity() (lease.Identity, error) {
	if f.Job != nil && f.Job.Run != "" {
		who, err := findIdentity(f)
		f.renewals++
		who.Run = fmt.Sprintf("%s-%d", f.Job.Run, f.renewals+1)
		return who, err
	}
	if f.Getenv("GITHUB_RUN_ID") != "" {
		return f.Identity()
	}
	return findIdentity(f)
}
