package hosted

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

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
