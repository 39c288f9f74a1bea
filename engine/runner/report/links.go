package report

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// CommitURL is where a commit is shown; empty where the repository isn't known.
func (l Links) CommitURL(sha string) string { return l.joinURL("commit/" + url.PathEscape(sha)) }

// BranchURL is where a branch is shown.
func (l Links) BranchURL(branch string) string {
	if l.Gitea {
		return l.joinURL("src/branch/" + escapePath(branch))
	}
	return l.joinURL("tree/" + escapePath(branch))
}

// LogURL is where the commits of a branch are listed that touch a folder.
func (l Links) LogURL(branch, folder string) string {
	if l.Gitea {
		return l.joinURL("commits/branch/" + escapePath(branch) + "/" + escapePath(folder))
	}
	return l.joinURL("commits/" + escapePath(branch) + "/" + escapePath(folder))
}

// IssueURL is where an issue or a pull request is shown: forges lead from the one
// address to the other.
func (l Links) IssueURL(number int) string { return l.joinURL("issues/" + strconv.Itoa(number)) }

// CompareURL is where a person opens the pull request of a branch by hand.
func (l Links) CompareURL(base, head string) string {
	u := l.joinURL("compare/" + escapePath(base) + "..." + escapePath(head))
	if u == "" || l.Gitea {
		return u
	}
	return u + "?expand=1"
}

// joinURL is an address below the repository's.
func (l Links) joinURL(path string) string {
	if l.Repo == "" {
		return ""
	}
	return strings.TrimSuffix(l.Repo, "/") + "/" + path
}

// escapePath escapes each part of a path. Round brackets would end a Markdown link.
func escapePath(s string) string {
	return strings.Join(lists.Map(strings.Split(s, "/"), func(p string) string {
		return strings.NewReplacer("(", "%28", ")", "%29").Replace(url.PathEscape(p))
	}), "/")
}
