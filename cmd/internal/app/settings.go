package app

import (
	"context"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/gitenv"
	"github.com/united-workforce/uwf/internal/lists"
)

// gitSettings are git's settings around the working directory, as far as uwf reads them.
type gitSettings []gitSetting

// gitSetting is one of them. The scope is git's word for where it stands. Section and last word
// of the key are in small letters.
type gitSetting struct{ scope, key, value string }

// settingsRead are the keys of gitSettings.
const settingsRead = `^(remote\..*\.url|url\..*\.insteadof|core\.sshcommand|credential\.(.*\.)?helper|extensions\.refstorage|uwf\.proof)$`

// readSettings asks git for its settings, once: each process of git costs milliseconds. There are
// none after an error: the caller then asks git for what it needs.
func readSettings(ctx context.Context, f *Factory) (gitSettings, error) {
	return f.settings.findOnce(func() (all gitSettings, err error) {
		out, err := GitIn(ctx, f, GitCall{
			Dir: f.RepoRoot(), Args: []string{"config", "--show-scope", "--null", "--get-regexp", settingsRead},
			Env: gitenv.Variables([]gitenv.Setting{{Key: "uwf.proof", Value: "new"}}), proof: "command\x00uwf.proof\nnew\x00",
		})
		for fields := strings.Split(string(out), "\x00"); len(fields) > 1; fields = fields[2:] {
			key, value, _ := strings.Cut(fields[1], "\n")
			all = append(all, gitSetting{fields[0], key, value})
		}
		return all, err
	})
}

// isPersonal says whether the person or the system says so, and no repository: agents may write
// what that says.
func (s gitSetting) isPersonal() bool { return s.scope == "global" || s.scope == "system" }

// hasKey says whether a key that begins so is set in the person's settings, or in any.
func (all gitSettings) hasKey(key string, anywhere bool) bool {
	begins := func(s gitSetting) bool { return strings.HasPrefix(s.key, key) && (anywhere || s.isPersonal()) }
	return slices.ContainsFunc(all, begins)
}

// remoteURL is the address of a remote that has just one, which no insteadOf changes. It is empty
// if git has to be asked.
func (all gitSettings) remoteURL(name string) string {
	urls := lists.Filter(all, func(s gitSetting) bool { return s.key == "remote."+name+".url" })
	if len(urls) != 1 || urls[0].isPersonal() { // git takes no remote that the repository doesn't know
		return ""
	}

	address := urls[0].value
	rewrites := func(s gitSetting) bool {
		return strings.HasSuffix(s.key, ".insteadof") && strings.HasPrefix(address, s.value)
	}
	if slices.ContainsFunc(all, rewrites) {
		return ""
	}
	return strings.TrimSpace(address)
}
