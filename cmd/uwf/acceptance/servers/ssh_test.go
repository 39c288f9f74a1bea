package servers

import "os"

// standIn is an ssh that runs the server's program on this machine, as a server does that
// accepts GIT_PROTOCOL, or doesn't.
func (l *lab) standIn(accepts bool, command string) access {
	drop := "unset GIT_PROTOCOL\n"
	if accepts {
		drop = ""
	}
	ssh := l.file("ssh", "#!/bin/sh\n"+drop+"for last; do :; done\n"+command)
	l.check(os.Chmod(ssh, 0o755)) //nolint:gosec // a program
	return access{url: "ssh://git@git.example" + l.repo, env: []string{"GIT_SSH=" + ssh, "GIT_SSH_VARIANT=ssh"}}
}

// sshRows are repositories that are reached over ssh.
func sshRows() []row {
	const plain = `exec sh -c "$last"` + "\n"
	return []row{
		{name: "git over ssh, protocol 0", needs: []string{"git"}, version: []string{"git", "version"}, serve: func(l *lab) access { return l.standIn(false, plain) }},
		{name: "git over ssh, protocol 2", needs: []string{"git"}, version: []string{"git", "version"}, serve: func(l *lab) access { return l.standIn(true, plain) }},
	}
}
