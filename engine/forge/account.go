package forge

import (
	"fmt"
	"net/url"
	"strings"
)

// NoReply is the address by which a forge knows an account's commits without telling its
// mail address; empty where the server's address is none.
func NoReply(flavour Flavour, server, login string, id int64) string {
	u, err := url.Parse(server)
	switch {
	case err != nil || u.Hostname() == "":
		return ""
	case flavour == Gitea:
		return login + "@noreply." + u.Hostname()
	case id != 0:
		return fmt.Sprintf("%d+%s@users.noreply.%s", id, login, u.Hostname())
	}
	return login + "@users.noreply." + u.Hostname()
}

// IsBot tells apps and the job's own token by their names, where the payload doesn't.
func IsBot(login string) bool {
	return strings.HasSuffix(login, "[bot]") || login == "gitea-actions" || login == "forgejo-actions"
}
