package sandbox

import (
	"fmt"
	"strings"
)

// Report is what this machine can enforce.
type Report struct {
	// System is the operating system: linux, darwin.
	System string
	// Landlock is the ABI version of Landlock; 0: there is none.
	Landlock int
	// Seatbelt: programs can be started in a sandbox of macOS.
	Seatbelt bool
	// Why says why there is no Landlock, or no Seatbelt.
	Why string
	// Seccomp: system calls can be filtered.
	Seccomp bool
	// Root: this process is root, and can start others as another user.
	Root bool
	// UID and GID are of the agents' user where Root is true.
	UID, GID int
	// User is that user's name; empty: it has none.
	User string
}

// Usable says whether there is enough for auto: another user, Landlock, or Seatbelt.
func (r Report) Usable() bool { return r.Root || r.Landlock > 0 || r.Seatbelt }

// abis are the versions of Landlock that matter, with the kernel each came with
// and what is open without it.
var abis = [...]struct {
	abi    int
	kernel string
	open   string
	moot   func(r Report, n Network) bool // something else closes it, or nobody asked
}{
	{1, "5.13", "files: agents can read what every user of this machine may read", nil},
	{2, "5.19", "files: agents can't move files from one folder to another", nil},
	{3, "6.2", "files: agents can empty files outside of the workspace that their user may write", nil},
	{4, "6.7", "network: TCP is not limited to the gateway's port", func(_ Report, n Network) bool { return n != GatewayOnly }},
	{5, "6.10", "devices: control calls (ioctl) on devices that agents may open are not limited", nil},
	{6, "6.12", "processes: abstract unix sockets of other processes can be reached", nil},
	{6, "6.12", "processes: agents can signal processes of this user, uwf among them", func(r Report, _ Network) bool { return r.Root }},
}

// Gaps are what this machine can't enforce, a sentence each: what auto goes
// without, and require refuses.
func (r Report) Gaps(n Network) []string {
	var out []string
	switch {
	case r.Seatbelt:
		return nil
	case r.System != "linux":
		return []string{strings.TrimRight("nothing can be enforced on "+r.System+": "+r.Why, ": \n")}
	}
	for _, a := range abis {
		if r.Landlock >= a.abi || a.moot != nil && a.moot(r, n) {
			continue
		}
		why := fmt.Sprintf("Landlock here has version %d", r.Landlock)
		if r.Landlock == 0 {
			why = r.Why
		}
		out = append(out, fmt.Sprintf("%s (needs Landlock version %d, Linux %s; %s)", a.open, a.abi, a.kernel, why))
	}
	if !r.Seccomp {
		open := "namespaces, ptrace, BPF, io_uring and the kernel's keyrings are not closed"
		if n == GatewayOnly {
			open += ", nor UDP and other kinds of sockets"
		}
		if !r.Root && r.Landlock < 9 {
			open += ", nor unix sockets such as the container engine's"
		}
		out = append(out, "system calls: "+open+" (needs seccomp filters on amd64 or arm64)")
	}
	return out
}

// Lines describe the machine for people, a sentence each.
func (r Report) Lines() []string {
	if r.Seatbelt {
		return []string{"Seatbelt confines files, processes and the network where sandbox says so, which nobody has tried yet"}
	}
	if r.System != "linux" {
		return r.Gaps(Open)
	}
	user := "agents run as this user, which isn't root: mode and times of its own files can be changed, and its processes count together"
	if r.Root {
		user = fmt.Sprintf("agents run as user %d", r.UID)
		if r.User != "" {
			user += " (" + r.User + ")"
		}
	}
	out := []string{user}
	if r.Landlock > 0 {
		out = append(out, fmt.Sprintf("Landlock version %d confines files and processes", r.Landlock))
	}
	if r.Seccomp {
		out = append(out, "system calls are filtered")
	}
	if r.Landlock < 4 || !r.Seccomp {
		out = append(out, "network: gateway can't be enforced")
	}
	return append(out, r.Gaps(Open)...)
}

// Summary says in a few words what is confined of agents, and what they reach.
func (s *Sandbox) Summary() (confined string, network Network) {
	if s == nil || s.Check() != nil {
		return "not confined", Open
	}
	r, network := s.report(), s.o.Network
	var what []string
	for _, layer := range []struct {
		there bool
		name  string
	}{
		{r.Landlock > 0 || r.Seatbelt, "files"}, {r.Root, "user"}, {r.Root || r.Landlock >= 6 || r.Seatbelt, "processes"}, {r.Seccomp, "syscalls"},
	} {
		if layer.there {
			what = append(what, layer.name)
		}
	}
	if !r.Seatbelt && (r.Landlock < 4 || !r.Seccomp) {
		network = Open
	}
	return "confined (" + strings.Join(what, ", ") + ")", network
}

// String is the whole report in one line.
func (r Report) String() string { return strings.Join(r.Lines(), "; ") }
