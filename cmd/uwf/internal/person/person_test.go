package person

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/hosted"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/forgetest"
)

// Who may approve is whom the forge names for the token, with the right to write.
func TestConfirm(t *testing.T) {
	s := forgetest.Start(t, forgetest.Options{})
	s.SetPermission("bob", "write")
	s.SetPermission("eve", "read")
	server, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	at := hosted.Place{Server: server, Repository: s.Repository()}
	for name, tt := range map[string]struct {
		token string
		want  string // empty: it is bob
	}{
		"may write":         {s.UserToken("bob"), ""},
		"may only read":     {s.UserToken("eve"), "doesn't say that eve may write to octo/demo"},
		"is nobody here":    {s.UserToken("mallory"), "doesn't say that mallory may write"},
		"is a job's":        {s.JobToken(forgetest.Permissions{"contents": "write"}), "ask " + s.URL + " who you are"},
		"is none":           {"ghp_wrong", "ask " + s.URL + " who you are"},
		"names nobody else": {"", "who you are"},
	} {
		c, err := forge.New(forge.Options{APIURL: s.APIURL, Repository: s.Repository(), Token: func() string { return tt.token }})
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadTokenOwner(t.Context(), c, at)
		switch {
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %+v, %v, want %s", name, p, err, tt.want)
		case tt.want == "" && (err != nil || p.Kind != record.ByForge || p.Login != "bob" || p.ID == 0 || !strings.HasSuffix(p.Email, "+bob@users.noreply."+server.Hostname())):
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// Git's user is taken from where git takes it, and made fit for a record.
func TestLocal(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, ".gitconfig")
	for name, tt := range map[string]struct {
		config, name, email string
		env                 []string
	}{
		"as configured":        {config: "[user]\nname = Alice Liddell\nemail = alice@example.com\n", name: "Alice Liddell", email: "alice@example.com"},
		"of the environment":   {config: "[user]\nname = Alice\nemail = a@example.com\n", env: []string{"GIT_AUTHOR_NAME=Bob", "GIT_AUTHOR_EMAIL=b@example.com"}, name: "Bob", email: "b@example.com"},
		"half of each":         {config: "[user]\nname = Alice\nemail = a@example.com\n", env: []string{"GIT_AUTHOR_NAME=Bob"}, name: "Bob", email: "a@example.com"},
		"the account's":        {env: []string{"USER=al"}, name: "al"},
		"nobody's":             {name: "somebody"},
		"not on one line":      {config: "[user]\nname = \"A\\nUwf-By: b\"\n", name: "A"},
		"with escapes":         {env: []string{"GIT_AUTHOR_NAME=\x1b[2JA\u202eb"}, name: "[2JA b"},
		"without end":          {env: []string{"GIT_AUTHOR_NAME=" + strings.Repeat("x", 5000)}, name: strings.Repeat("x", 200)},
		"nothing but controls": {env: []string{"GIT_AUTHOR_NAME=\x01\x02", "USER=al"}, name: "al"},
		"with a secret":        {env: []string{"GIT_AUTHOR_NAME=Al hunter2-7Zq-LEAK", "GITHUB_TOKEN=hunter2-7Zq-LEAK"}, name: "Al [redacted:GITHUB_TOKEN]"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(config, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			f := app.NewAt(dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "UWF_HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "UWF_LOG=off"}, tt.env...), app.IO{})
			p, err := IdentifyByGit(t.Context(), f)
			if err != nil || p.Kind != record.ByLocal || p.Name != tt.name || p.Email != tt.email || p.Validate() != nil {
				t.Errorf("%+v, %v, want %q <%s>", p, err, tt.name, tt.email)
			}
		})
	}
}

// An interrupt is no answer.
func TestLocalInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := IdentifyByGit(ctx, app.NewAt(t.TempDir(), nil, app.IO{})); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", p, err)
	}
}
