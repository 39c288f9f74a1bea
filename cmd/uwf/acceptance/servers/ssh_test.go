package servers

import (
	"os"
	"path/filepath"
)

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

const sshdConfig = `ListenAddress 127.0.0.1:%PORT%
HostKey %DIR%/host
PidFile none
AuthorizedKeysFile %DIR%/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
AcceptEnv LANG LC_*
SetEnv HOME=%HOME%
%MORE%
`

const sshConfig = `Host *
	IdentityFile %DIR%/admin
	IdentitiesOnly yes
	UserKnownHostsFile %DIR%/known
	StrictHostKeyChecking no
	LogLevel ERROR
`

// sshd starts a real server, as Debian has it, with more settings. The user's home is moved: what
// lies in the account's is not the test's.
func (l *lab) sshd(home, more, authorized, path string) access {
	l.run(l.dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host")
	l.file("authorized", authorized)
	port := l.freePort()
	l.daemon("127.0.0.1:"+port, nil, "sshd", "-D", "-e", "-f", l.file("sshd.conf", sshdConfig, "%PORT%", port, "%DIR%", l.dir, "%HOME%", home, "%MORE%", more))
	client := l.file("ssh.conf", sshConfig, "%DIR%", l.dir)
	return access{url: "ssh://" + l.account() + "@127.0.0.1:" + port + path, env: []string{"GIT_SSH_COMMAND=ssh -F " + client}}
}

// makeKey makes the client's key and returns the public one.
func (l *lab) makeKey() string {
	l.run(l.dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "admin", "-f", "admin")
	public, err := os.ReadFile(filepath.Join(l.dir, "admin.pub"))
	l.check(err)
	return string(public)
}

// serveSSH serves the repository by a real sshd.
func serveSSH(more string) func(*lab) access {
	return func(l *lab) access { return l.sshd(l.dir, more, l.makeKey(), l.repo) }
}

// serveGitolite serves by gitolite behind a real sshd. rule is what the user may do.
func serveGitolite(more, rule string) func(*lab) access {
	return func(l *lab) access {
		l.makeKey()
		home := filepath.Join(l.dir, "gitolite")
		l.check(os.MkdirAll(home, 0o755)) //nolint:gosec // as homes are
		env := []string{"HOME=" + home, "USER=" + l.account()}
		l.runWith(env, l.dir, "gitolite", "setup", "-pk", "admin.pub")
		l.file("gitolite/.gitolite/conf/gitolite.conf", "repo r\n\t"+rule+" = admin\n")
		l.runWith(env, l.dir, "gitolite", "compile")
		served := filepath.Join(home, "repositories", "r.git")
		l.run(served, "git", "fetch", "-q", l.repo, "main:main")
		l.run(served, "git", "symbolic-ref", "HEAD", "refs/heads/main")
		l.repo = served
		authorized, err := os.ReadFile(filepath.Join(home, ".ssh", "authorized_keys"))
		l.check(err)
		return l.sshd(home, more, string(authorized), "/r")
	}
}

// sshRows are repositories that are reached over ssh.
func sshRows() []row {
	const plain = `exec sh -c "$last"` + "\n"
	const accept = "AcceptEnv GIT_PROTOCOL"
	sshd := []string{"sshd", "ssh", "ssh-keygen"}
	if os.Geteuid() == 0 {
		sshd = append(sshd, "/run/sshd") // it gives up root there
	}
	gitolite := append([]string{"gitolite"}, sshd...)
	version := []string{"git", "version"}
	gitoliteVersion := []string{"dpkg-query", "-W", "gitolite3"}
	rows := []row{
		{name: "git over ssh, protocol 0", version: version, serve: func(l *lab) access { return l.standIn(false, plain) }},
		{name: "git over ssh, protocol 2", version: version, serve: func(l *lab) access { return l.standIn(true, plain) }},
		{name: "sshd as Debian has it", needs: sshd, version: []string{"sshd", "-V"}, serve: serveSSH("")},
		{name: "sshd, AcceptEnv GIT_PROTOCOL", needs: sshd, version: []string{"sshd", "-V"}, serve: serveSSH(accept)},
		{name: "gitolite, sshd as Debian has it", needs: gitolite, version: gitoliteVersion, serve: serveGitolite("", "RW+")},
		{name: "gitolite, AcceptEnv GIT_PROTOCOL", needs: gitolite, version: gitoliteVersion, serve: serveGitolite(accept, "RW+")},
		{name: "gitolite, refs/heads only", needs: gitolite, version: gitoliteVersion, serve: serveGitolite(accept, "RW+ refs/heads/"), says: refusedAtStart("DENIED by fallthru")},
	}
	for i := range rows {
		rows[i].needs = append(rows[i].needs, "git")
	}
	return rows
}
