package servers

import (
	"os"
	"path/filepath"
	"strings"
)

// serveHelper serves by the Go program of .ci/tools/servers.
func serveHelper(kind string) func(*lab) access {
	return func(l *lab) access {
		address := "127.0.0.1:" + l.freePort()
		l.daemon(address, nil, goServers, kind, address, l.root)
		return access{url: "http://" + address + "/r.git"}
	}
}

// serveGoGit serves by go-git, which takes pushes from users who name themselves.
func serveGoGit(l *lab) access {
	a := serveHelper("go-git")(l)
	helper := "[credential]\n\thelper = \"!f() { echo username=someone; echo password=word; }; f\"\n"
	a.env = []string{"GIT_CONFIG_GLOBAL=" + l.file("home/.gitconfig", helper)}
	return a
}

// serveNode serves by one of npm's servers.
func serveNode(kind string) func(*lab) access {
	return func(l *lab) access {
		port := l.freePort()
		l.daemon("127.0.0.1:"+port, nil, "node", find(nodeServers), kind, port, l.root)
		return access{url: "http://127.0.0.1:" + port + "/r.git"}
	}
}

// Files in the folder that .ci/servers filled.
const (
	goServers   = "./servers"
	nodeServers = "npm/npm.cjs"
	jgitPath    = "jgit/classpath"
)

// python is Debian's own, which has the module.
const python = "/usr/bin/python3"

func serveDulwich(l *lab) access {
	port := l.freePort()
	l.daemon("127.0.0.1:"+port, nil, python, "-m", "dulwich.web", "-l", "127.0.0.1", "-p", port, l.repo)
	return access{url: "http://127.0.0.1:" + port + "/"}
}

// serveJGit runs JGit over a stand-in for ssh.
func serveJGit(l *lab) access {
	classes, err := os.ReadFile(find(jgitPath))
	l.check(err)
	return l.standIn(true, "eval \"set -- $last\"\nexec java -XX:TieredStopAtLevel=1 -cp '"+strings.TrimSpace(string(classes))+"' JGit \"$1\" \"$2\"\n")
}

// programRows are servers that are no git, or call it otherwise than http-backend does.
func programRows() []row {
	const stdio = "eval \"set -- $last\"\nexec \"dul-${1#git-}\" \"$2\"\n"
	dulwich := []string{python, "-c", "import dulwich; print('.'.join(map(str, dulwich.__version__)))"}
	rows := []row{
		{name: "JGit, over ssh", needs: []string{"java", jgitPath}, version: []string{"sh", "-c", "readlink /usr/share/java/org.eclipse.jgit.jar"}, serve: serveJGit},
		{name: "dulwich, HTTP", needs: []string{python, "dul-receive-pack"}, version: dulwich, serve: serveDulwich},
		{name: "dulwich, over ssh", needs: []string{"dul-receive-pack"}, version: dulwich, serve: func(l *lab) access { return l.standIn(true, stdio) }},
		{name: "gitkit", needs: []string{goServers}, version: moduleVersion("sosedoff/gitkit"), serve: serveHelper("gitkit")},
		{name: "go-git's backend", needs: []string{goServers}, version: moduleVersion("go-git/go-git/v6"), serve: serveGoGit},
	}
	for _, kind := range []string{"node-git-server", "git-http-backend", "pushover"} {
		rows = append(rows, row{
			name: kind + " (npm)", needs: []string{"node", nodeServers},
			version: []string{"sh", "-c", `grep '"version"' "$0"`, filepath.Join(os.Getenv(variable), "npm/node_modules", kind, "package.json")},
			serve:   serveNode(kind),
		})
	}
	for i := range rows {
		if strings.HasPrefix(rows[i].name, "node-git-server") || strings.HasPrefix(rows[i].name, "pushover") {
			// They answer no push that names neither a branch nor a tag, stock git's neither.
			rows[i].says, rows[i].last = map[string]string{"step": "no sign of life for 1m0s"}, "step"
		}
		rows[i].needs = append(rows[i].needs, "git")
		rows[i].config = append(rows[i].config, "http.receivepack", "true")
	}
	return rows
}

// moduleVersion is a command that prints the version of a module in the Go program.
func moduleVersion(module string) []string {
	return []string{"sh", "-c", `go version -m "$0" | grep -F "$1"`, filepath.Join(os.Getenv(variable), goServers), module}
}
