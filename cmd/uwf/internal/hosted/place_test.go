package hosted

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/forge"
)

func TestOf(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/octo/demo.git":            "https://github.com/octo/demo",
		"https://github.com/octo/demo/":               "https://github.com/octo/demo",
		"git@github.com:octo/demo.git":                "https://github.com/octo/demo",
		"github.com:octo/demo":                        "https://github.com/octo/demo",
		"ssh://git@ghes.example.com:2222/octo/demo":   "https://ghes.example.com/octo/demo",
		"http://127.0.0.1:3000/octo/demo.git":         "http://127.0.0.1:3000/octo/demo",
		"https://example.com/gitea/octo/demo.git":     "https://example.com/gitea/octo/demo",
		"https://user:secret@github.com/octo/demo.js": "https://github.com/octo/demo.js",
		"/srv/git/demo.git":                           "",
		"file:///srv/git/octo/demo.git":               "",
		"https://user:secret@github.com/":             "",
		"C:\\repos\\demo":                             "",
		"../demo":                                     "",
		"":                                            "",
	} {
		p, err := Of(remote)
		if err != nil {
			if want != "" || strings.Contains(err.Error(), "secret@") {
				t.Errorf("%s: %v", remote, err)
			}
			continue
		}
		if p.URL() != want {
			t.Errorf("%s: %s, want %s", remote, p.URL(), want)
		}
	}
}

// TestFind asks the real ssh program, with settings as people have them who have two accounts.
func TestFind(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("the program that is asked is not here; TestFindWithoutSSH tries that")
	}

	dir := t.TempDir()
	for name, text := range map[string]string{
		"config": `Host github.com-work
	HostName github.com
Host work
	HostName ssh.github.com
	Port 443
Host gitea
	HostName git.example.com
Host git.example.org
	HostName 10.0.0.5
Host httpd
	HostName www.example.com
`,
		"ssh": "#!/bin/sh\nexec " + ssh + " -F " + filepath.Join(dir, "config") + ` "$@"` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	f := &app.Factory{Environ: []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")}, Dir: t.TempDir()}
	for remote, want := range map[string]string{
		"git@github.com-work:acme/app.git":     "https://github.com/acme/app",
		"ssh://git@github.com-work/acme/app":   "https://github.com/acme/app",
		"work:acme/app":                        "https://github.com/acme/app",
		"git@gitea:acme/app.git":               "https://git.example.com/acme/app",
		"git@git.example.org:acme/app.git":     "https://git.example.org/acme/app",
		"git@unknown.example.com:acme/app.git": "https://unknown.example.com/acme/app",
		"https://gitea/acme/app":               "https://gitea/acme/app",
		"httpd:acme/app":                       "https://www.example.com/acme/app",
		"-oProxyCommand=x:acme/app":            "https://-oProxyCommand=x/acme/app",
	} {
		p, err := Find(t.Context(), f, remote)
		if err != nil || p.URL() != want {
			t.Errorf("%s: %s, %v; want %s", remote, p.URL(), err, want)
		}
	}
}

// TestFindWithoutSSH: where there is no ssh program, a host is called what the remote calls it.
func TestFindWithoutSSH(t *testing.T) {
	f := &app.Factory{Environ: []string{"PATH=" + t.TempDir()}, Dir: t.TempDir()}
	if p, err := Find(t.Context(), f, "gitea:acme/app"); err != nil || p.URL() != "https://gitea/acme/app" {
		t.Errorf("%s, %v", p.URL(), err)
	}
}

// A server is asked what it is, without a token; what does not answer, and what answers
// elsewhere, is no Gitea.
func TestIsGitea(t *testing.T) {
	says := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/version" || r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
				t.Errorf("asked for %s %s, %v", r.Method, r.URL, r.Header)
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	leadsTo := func(to string) string {
		s := httptest.NewServer(http.RedirectHandler(to+"/api/v1/version", http.StatusFound))
		t.Cleanup(s.Close)
		return s.URL
	}
	const version = `{"version":"1.26.0"}`
	gitea := says(200, version)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		server string
		is     bool
		fails  bool
	}{
		"Gitea":            {gitea, true, false},
		"Forgejo":          {says(200, `{"version":"11.0.0+gitea-1.22.0"}`), true, false},
		"no version":       {says(200, `{"version":""}`), false, false},
		"a list":           {says(200, `[]`), false, false},
		"a sign-in page":   {says(200, "<html>"), false, false},
		"nothing there":    {says(404, version), false, false},
		"out of order":     {says(502, version), false, true},
		"an endless text":  {says(200, version+strings.Repeat(" ", 70<<10)+"x"), true, false},
		"sends elsewhere":  {leadsTo(strings.Replace(gitea, "127.0.0.1", "localhost", 1)), false, false},
		"sends on":         {leadsTo(gitea), true, false},
		"does not answer":  {gone.URL, false, true},
		"GitHub itself":    {"https://github.com", false, false},
		"GitHub's for you": {"https://acme.ghe.com", false, false},
	} {
		u, err := url.Parse(c.server)
		if err != nil {
			t.Fatal(err)
		}
		is, err := Place{Server: u}.IsGitea(t.Context(), http.DefaultClient)
		if is != c.is || (err != nil) != c.fails || err != nil && strings.Contains(err.Error(), "/api/v1") {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}

// Forges whose API uwf does not speak are known by their hosts' names; a Gitea may have any.
func TestOther(t *testing.T) {
	for remote, want := range map[string]string{
		"https://gitlab.com/a/b": "GitLab", "git@GitLab.example.com:a/b/c.git": "GitLab", "https://my-gitlab.example.com/a/b": "GitLab",
		"git@bitbucket.org:a/b.git": "Bitbucket", "https://code.bitbucket.example.com/scm/a/b.git": "Bitbucket",
		"https://dev.azure.com/a/b/_git/c": "Azure DevOps", "git@ssh.dev.azure.com:v3/a/b/c": "Azure DevOps", "https://a.visualstudio.com/b/_git/c": "Azure DevOps",
		"https://github.com/gitlab/bitbucket": "", "https://codeberg.org/a/b": "", "https://gitlabel.example.com/a/b": "", "https://notdev.azure.com/a/b": "",
	} {
		p, err := Of(remote)
		if err != nil || p.Other() != want {
			t.Errorf("%s: %q, %v; want %q", remote, p.Other(), err, want)
		}
	}
	place := Place{Server: &url.URL{Scheme: "https", Host: "gitlab.example.com"}}
	for body, want := range map[string]string{`{"version":"1.26.0"}`: "", `{"message":"404 Not Found"}`: "GitLab"} {
		c := &http.Client{Transport: answering(body)}
		if got := place.FindOther(t.Context(), c); got != want {
			t.Errorf("a server that answers %s is %q, want %q", body, got, want)
		}
	}
	place.Server.Host = "git.example.com"
	if got := place.FindOther(t.Context(), nil); got != "" { // nobody is asked
		t.Errorf("%q", got)
	}
}

// answering is a network in which every server gives one answer.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func TestAPI(t *testing.T) {
	gitea := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/version" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(`{"version":"1.26.0"}`))
	}))
	defer gitea.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	env := map[string]string{"GITHUB_SERVER_URL": "https://job.example.com", "GITHUB_API_URL": "https://job.example.com/api/v1"}
	for server, want := range map[string]string{
		"https://github.com": "https://api.github.com", "https://acme.ghe.com": "https://api.acme.ghe.com",
		"https://job.example.com": "https://job.example.com/api/v1", gitea.URL: gitea.URL + "/api/v1", other.URL: other.URL + "/api/v3",
	} {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		api, flavour := Place{Server: u}.API(t.Context(), func(name string) string { return env[name] }, http.DefaultClient)
		if api != want || (flavour == forge.Gitea) != strings.HasSuffix(want, "/api/v1") {
			t.Errorf("%s: %s %s, want %s", server, api, flavour, want)
		}
	}
}
