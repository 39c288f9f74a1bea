package proc

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/internal/lists"
)

// process is one line of the process table.
type process struct {
	pid, ppid, pgrp, session int
	start                    uint64 // grows with time; only compared
}

// sweepGroup kills everything that belongs to g until a whole look at the process
// table finds nothing of it, zombies included: a process that forks and exits
// always leaves a zombie to us, so a look that finds none has missed nothing. It
// returns how many processes there were besides the program itself and its watcher.
func (g *group) sweepGroup() (int, error) {
	deadline := time.Now().Add(sweepFor)
	seen := map[int]struct{}{}
	for looks, wait := 1, time.Millisecond; ; looks, wait = looks+1, min(2*wait, 20*time.Millisecond) {
		found, err := g.findProcesses()
		if err != nil {
			return len(seen), &LeftoverError{PIDs: []int{g.leader}, Err: err}
		}
		if len(found) == 0 {
			return len(seen), nil
		}
		for _, p := range found {
			if p.pid != g.leader && p.pid != g.programPID() {
				seen[p.pid] = struct{}{}
			}
		}
		killErr := g.killGroups(found)
		// Time alone proves nothing on a machine that gives us none.
		if looks >= sweepLooks && time.Now().After(deadline) {
			return len(seen), &LeftoverError{PIDs: listPIDs(found), Err: killErr}
		}
		time.Sleep(wait)
	}
}

func listPIDs(ps []process) []int {
	return lists.Map(ps, func(p process) int { return p.pid })
}

// killGroups kills whole groups first: the kernel does that in one go, so that a group
// which only forks can't outrun it. A group is never ours, since everything here
// lives in other sessions than we do.
func (g *group) killGroups(found []process) error {
	var errs []error
	groups := map[int]struct{}{}
	for _, p := range found {
		if p.pgrp > 1 {
			groups[p.pgrp] = struct{}{}
		}
	}
	for pgrp := range groups {
		errs = append(errs, signalError(syscall.Kill(-pgrp, syscall.SIGKILL)))
	}
	self := os.Getpid()
	for _, p := range found {
		if p.ppid == self && p.pid != g.leader {
			reapOrphan(p.pid)
			continue
		}
		if _, ok := groups[p.pgrp]; !ok {
			errs = append(errs, signalError(syscall.Kill(p.pid, syscall.SIGKILL)))
		}
	}
	return errors.Join(errs...)
}

// signalError forgives that the process is gone already.
func signalError(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// reapOrphan collects an adopted orphan if it has ended. It asks for that one process:
// waiting for any would steal the children of os/exec.
func reapOrphan(pid int) {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// findProcesses returns g's processes as the process table shows them now.
func (g *group) findProcesses() ([]process, error) {
	// Held while the table is read: a program that starts meanwhile would look
	// like an orphan.
	programs.mu.Lock()
	defer programs.mu.Unlock()
	table, err := listProcesses()
	if err != nil {
		return nil, err
	}
	own, err := ownSession()
	if err != nil {
		return nil, err
	}
	s := selection{
		g: g, table: table, self: os.Getpid(), session: own,
		alone: len(programs.active) == 1, markOf: markOf, running: runningMark,
	}
	return s.selectOwned(), nil
}

// selection picks the processes of one group out of the process table.
type selection struct {
	g       *group
	table   []process
	self    int
	session int  // our own
	alone   bool // g is the only group
	markOf  func(pid int) string
	running func(mark string) bool // it is that of a group that runs now, or of what is in one

	owned map[int]struct{}
}

func (s *selection) selectOwned() []process {
	s.owned = map[int]struct{}{}
	leaderGone := s.g.isReaped()
	for _, p := range s.table {
		switch {
		case p.pid == s.g.leader && !leaderGone:
			s.owned[p.pid] = struct{}{}
		case p.session == s.session:
			// Ours, or not below us: nobody comes back into our session.
		case s.inSession(p), s.isOrphan(p):
			s.owned[p.pid] = struct{}{}
		}
	}
	s.addChildren()
	var out []process
	for _, p := range s.table {
		if _, ok := s.owned[p.pid]; ok {
			s.g.sessions[p.session] = struct{}{}
			out = append(out, p)
		}
	}
	return out
}

// inSession: a session of g, by its number and not merely by a number that was
// given out again.
func (s *selection) inSession(p process) bool {
	_, ok := s.g.sessions[p.session]
	return ok && p.start >= s.g.started
}

// isOrphan: a process that the kernel gave to us because its parents are gone. By
// its mark it is g's or another's; one that wiped its environment, or wrote a mark of
// its own into it, is g's when there is no other it could belong to.
func (s *selection) isOrphan(p process) bool {
	if p.ppid != s.self || p.start < s.g.started {
		return false
	}
	mark := s.markOf(p.pid)
	if isBelow(mark, s.g.mark) {
		return true
	}
	return s.alone && !s.running(mark)
}

// isBelow says whether a mark is a group's or of what a group's programs started.
func isBelow(mark, group string) bool { return mark == group || strings.HasPrefix(mark, group+"/") }

// runningMark says whether a mark is that of a group that runs now, or of what is in
// one. The lock of programs is held.
func runningMark(mark string) bool {
	for g := range programs.active {
		if isBelow(mark, g.mark) {
			return true
		}
	}
	return false
}

// addChildren adds the children of what is owned, down to the last.
func (s *selection) addChildren() {
	for grown := true; grown; {
		grown = false
		for _, p := range s.table {
			if _, ok := s.owned[p.pid]; ok || p.session == s.session {
				continue
			}
			if _, ok := s.owned[p.ppid]; ok {
				s.owned[p.pid] = struct{}{}
				grown = true
			}
		}
	}
}
