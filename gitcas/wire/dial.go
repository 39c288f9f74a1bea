package wire

import (
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// DialOptions say how to reach a remote. The zero value works.
type DialOptions = transport.Options

// Dial returns the remote at a URL without contacting it. It takes http://,
// https://, file:// and ssh:// URLs, absolute paths, and the short form of ssh,
// user@host:path.
func Dial(rawURL string, o DialOptions) (Remote, error) {
	t, err := transport.New(rawURL, o)
	if err != nil {
		return nil, NewError("open", transport.CleanURL(rawURL), err)
	}
	return &remote{t: t, forge: isForge(t.URL(), o.Env)}, nil
}

// isForge reports whether a URL is one of github.com, or of the forge whose job this is: all with
// such jobs speak version 2 and offer what git does.
func isForge(url string, env []string) bool {
	if env == nil {
		env = os.Environ()
	}
	servers := []string{"https://github.com"}
	for _, variable := range env {
		if server, ok := strings.CutPrefix(variable, "GITHUB_SERVER_URL="); ok && server != "" {
			servers = append(servers, strings.TrimRight(server, "/"))
		}
	}
	return slices.ContainsFunc(servers, func(server string) bool { return strings.HasPrefix(url, server+"/") })
}

// fetchLimits bound what one fetch may hold.
var fetchLimits = pack.Limits{Object: 128 << 20, Total: 1 << 30, Count: 2_000_000}
