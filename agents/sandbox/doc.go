// Package sandbox confines an agent's process and everything that it starts, and in the same
// way a command that a repository brings. What each may reach besides is its own ([Run]).
//
// A confined agent is started through this binary itself ([Helper]): the new
// process takes away its own rights and then becomes the agent by exec, so that no
// instruction of an agent ever runs with more than it may have.
//
// # What is taken away
//
// Files, by Landlock: the workspace, the folder of the run (UWF_STAGE, a HOME and
// a TMPDIR of its own) and a few devices can be written; the system, the folders of
// PATH, known toolchains but for credentials in their folders, UWF_CONTEXT and this
// binary can be read; nothing else can be opened. So the user's home, RUNNER_TEMP,
// the event file and the files behind GITHUB_ENV, GITHUB_OUTPUT and the like are out of
// reach, wherever they lie. What Landlock has no right for (looking a name up, changing
// mode or times of a file that one owns) is left to the next layer.
//
// Another user, where uwf is root: `uwf-agent` if there is one, else number
// [AgentID], without capabilities, other groups or a way to gain privileges. The
// workspace is given to that user for the run and back to its owner after it. A
// limit on processes then counts the agent's alone.
//
// System calls, by a filter: those that make namespaces, mount, look into other
// processes (ptrace, process_vm_readv, pidfd_getfd), load programs or modules into the
// kernel, count what it does or change the machine; io_uring; the kernel's keyrings;
// other kinds of sockets than unix, TCP, UDP and netlink; calls of other architectures
// (so 32-bit programs don't run). Agents have no capabilities, and so lose little by
// it but the parts of the kernel that its exploits begin with; it also holds where
// Landlock is old. What does not work under it: debuggers and strace; LeakSanitizer,
// a part of AddressSanitizer (ASAN_OPTIONS=detect_leaks=0 goes without); rootless
// containers, bubblewrap and other sandboxes made of namespaces, that of Chromium among
// them (--no-sandbox goes without; Playwright does so by itself).
//
// Without a user of its own an agent makes no unix sockets, since those of the
// container engine, of systemd and of the ssh agent would obey it; pairs of connected
// ones (socketpair) are allowed. The same holds where the container engine's socket is
// open to everybody.
//
// What an agent's parents had open is closed, it leaves the session's keyring, it
// writes no core files, and it is killed when uwf ends. Only with a user of its own
// does it get pseudo terminals: others could be the user's.
//
// Processes outside can't be signalled, traced or looked into, and their abstract
// unix sockets can't be reached.
//
// # Network
//
// [Open] is the default: agents download packages, and tests talk to servers of
// their own on ports that nobody knows before; Landlock knows ports, not hosts.
// What an open network can leak is what the agent can read: the workspace. It
// holds no token and no key. With [GatewayOnly] an agent reaches the TCP port of
// the model gateway, on whatever host, and nothing else: no DNS, no UDP, no tests
// with servers of their own. A run without Ports has loopback for itself instead: in a
// network namespace, or by TCP sockets that the helper makes for it.
//
// # What it does not do
//
// On macOS the same places and network are confined by Seatbelt, another program, and
// other processes can't be signalled; neither system calls nor numbers of processes are
// limited there.
//
// It does not hide that other files exist, nor process ids and command lines. It
// bounds neither memory nor disk space. Without root it can't keep an agent from
// changing mode and times of files that its user owns. Without Landlock it can't
// keep two agents of the same machine apart. Caches are private to a run, so
// compilers begin anew in each; Go modules and crates are taken from the machine's own cache.
// It never loosens what the system forbids, and never changes the process that it
// is called in.
package sandbox
