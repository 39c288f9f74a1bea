// Package sandbox confines an agent's process and everything that it starts.
//
// A confined agent is started through this binary itself ([Helper]): the new
// process takes away its own rights and then becomes the agent by exec, so that no
// instruction of an agent ever runs with more than it may have.
//
// # What is taken away
//
// Files, by Landlock: the workspace, the folder of the run (UWF_STAGE, a HOME and
// a TMPDIR of its own) and a few devices can be written; the system, the folders of
// PATH, known toolchains, UWF_CONTEXT and this binary can be read; nothing else can
// be opened. So the user's home, RUNNER_TEMP, the event file and the files behind
// GITHUB_ENV, GITHUB_OUTPUT and the like are out of reach, wherever they lie. What
// Landlock has no right for (looking a name up, changing mode or times of a file
// that one owns) is left to the next layer.
//
// Another user, where uwf is root: `uwf-agent` if there is one, else number
// [AgentID], without capabilities, other groups or a way to gain privileges. The
// workspace is given to that user for the run and back to its owner after it. A
// limit on processes then counts the agent's alone.
//
// System calls, by a filter: other kinds of sockets than unix, TCP, UDP and
// netlink; io_uring; the kernel's keyrings; calls of other architectures (so
// 32-bit programs don't run). Without a user of its own an agent makes no unix
// sockets, since those of the container engine, of systemd and of the ssh agent
// would obey it; pairs of connected ones (socketpair) are allowed.
//
// Processes outside can't be signalled, traced or looked into, and their abstract
// unix sockets can't be reached.
//
// # Network
//
// [Open] is the default: agents download packages, and tests talk to servers of
// their own on ports that nobody knows before; Landlock knows ports, not hosts.
// What an open network can leak is what the agent can read: the workspace. It
// holds no token and no key. With [GatewayOnly] an agent reaches TCP port of the
// model gateway, whatever the host, and nothing else: no DNS, no UDP, no tests
// with servers of their own.
//
// # What it does not do
//
// It does not hide that other files exist, bound memory or disk space, or keep
// two agents of one job apart where Landlock is missing. It never loosens what
// the system forbids, and never changes the process that it is called in.
package sandbox
