package fault

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
)

// This file is the only place where text from servers, from git and from ssh
// becomes one of the Err… kinds.

// rule gives a kind to texts that contain all of its parts.
type rule struct {
	kind  error
	parts []string // lower case
}

// errorRules are tried in order: the more special text first. The table is a
// function because a package holds no state.
func errorRules() []rule {
	r := func(kind error, parts ...string) rule { return rule{kind, parts} }
	return []rule{
		// Push protection: GitHub (GH013 with a section of its own), GitLab,
		// Bitbucket.
		r(ErrSecretRefused, "push protection", "secret"),
		r(ErrSecretRefused, "cannot contain secrets"),
		r(ErrSecretRefused, "push blocked: secret"),
		r(ErrSecretRefused, "secret scanning found"),
		r(ErrSecretRefused, "declined due to a detected secret"),
		r(ErrSecretRefused, "secrets detected in"),

		// GitHub's push policy (GH013, once for each ref of the push). It counts deletions, and
		// refs outside of branches and tags, too.
		r(ErrTooManyRefs, tooManyRefs, branchesOrTags),

		// Ref names that can't stand beside each other: trying again won't help.
		r(ErrInvalid, "exists; cannot create"),
		r(ErrInvalid, "funny refname"),
		r(ErrInvalid, "trying to write non-commit object"),
		r(ErrInvalid, "not a valid ref name"),

		// Files of the server's that git can't write: trying again won't help either.
		r(ErrReadOnly, "read-only file system"),
		r(ErrReadOnly, "unable to create temporary object directory"),
		r(ErrReadOnly, "unable to migrate objects to permanent storage"),
		r(ErrReadOnly, "insufficient permission for adding an object"),
		r(ErrReadOnly, "unable to create", "permission denied"),
		r(ErrReadOnly, "cannot lock ref", "permission denied"),

		// Someone else was first.
		r(ErrLostRace, "stale info"),
		r(ErrLostRace, "failed to update ref"),
		r(ErrLostRace, "failed to delete"),
		r(ErrLostRace, "failed to lock"),
		r(ErrLostRace, "cannot lock ref"),
		r(ErrLostRace, "unable to lock"),
		r(ErrLostRace, "reference already exists"),
		r(ErrLostRace, "incorrect old value"),
		r(ErrLostRace, "but expected"),
		r(ErrLostRace, "fetch first"),
		r(ErrLostRace, "updated by another client"), // Azure DevOps TF401028
		r(ErrLostRace, "remote ref", "does not match"),
		r(ErrLostRace, "atomic transaction failed"),
		r(ErrLostRace, "atomic push fail"),
		r(ErrLostRace, "transaction aborted"),

		// GitLab's text for a missing project speaks of permission too.
		r(ErrNotFound, "project you were looking for could not be found"),

		// What the credentials may not do.
		r(ErrDenied, "refusing to allow", "workflow"),
		r(ErrDenied, "permission denied"),
		r(ErrDenied, "permission to ", "denied to"),
		r(ErrDenied, "write access to repository not granted"),
		r(ErrDenied, "not allowed to push code to this project"),
		r(ErrDenied, "you don't have permission"),
		r(ErrDenied, "you don't have access"),
		r(ErrDenied, "not allowed to download code"),
		r(ErrDenied, "archived so it is read-only"),
		r(ErrDenied, "repository was archived"),
		r(ErrDenied, "authentication failed"),
		r(ErrDenied, "invalid username or"),
		r(ErrDenied, "access denied"),
		r(ErrDenied, "is not allowed to access"),
		r(ErrDenied, "marked as read only"),
		r(ErrDenied, "host key verification failed"),
		r(ErrDenied, "dubious ownership"),
		r(ErrDenied, "unsafe repository"),
		r(ErrDenied, "could not read username"),
		r(ErrDenied, "service not enabled"),
		r(ErrDenied, "saml sso"),

		// Branch rules and hooks.
		r(ErrProtected, "protected branch"),
		r(ErrProtected, "repository rule violations"),
		r(ErrProtected, "gh001"),
		r(ErrProtected, "gh006"),
		r(ErrProtected, "gh013"),
		r(ErrProtected, "hook declined"),
		r(ErrProtected, "hook failed"),
		r(ErrProtected, "currently checked out"),
		r(ErrProtected, "deletion prohibited"),
		r(ErrProtected, "deletion of the current branch prohibited"),
		r(ErrProtected, "deny updating a hidden ref"),
		r(ErrProtected, "deny deleting a hidden ref"),
		r(ErrProtected, "non-fast-forward"),
		r(ErrProtected, "not allowed to push"),
		r(ErrProtected, "not allowed to force push"),
		r(ErrProtected, "not allowed to access some of the refs"),
		r(ErrProtected, "not permitted; you must use a pull request"), // Azure DevOps TF402455
		r(ErrProtected, "exceeds maximum allowed size"),
		r(ErrProtected, "file size limit"),

		// What isn't there.
		r(ErrNotFound, "not our ref"),
		r(ErrNotFound, "missing necessary objects"),
		r(ErrNotFound, "unresolved delta"),
		r(ErrNotFound, "bad pack header", "missing"),
		r(ErrNotFound, "repository not found"),
		r(ErrNotFound, "repository", "does not exist"),
		r(ErrNotFound, "does not appear to be a git repository"),
		r(ErrNotFound, "not a git repository"),
		r(ErrNotFound, "no such project"),
		r(ErrNotFound, "could not find repository"),
		r(ErrNotFound, "not found", "repositor"),
		r(ErrNotFound, "no such file or directory"),

		// The way there.
		r(ErrNoWay, "could not resolve host", "not known"),
		r(ErrNoWay, "could not resolve host", "no address associated"),
		r(ErrUnreachable, "could not resolve host"),
		r(ErrUnreachable, "connection refused"),
		r(ErrUnreachable, "connection timed out"),
		r(ErrUnreachable, "operation timed out"),
		r(ErrUnreachable, "connection closed"),
		r(ErrUnreachable, "connection reset"),
		r(ErrUnreachable, "no route to host"),
		r(ErrUnreachable, "network is unreachable"),
		r(ErrUnreachable, "abnormal exit"),
		r(ErrUnreachable, "no space left on device"),
		r(ErrUnreachable, "internal server error"),
		r(ErrUnreachable, "internal api unreachable"),
		r(ErrUnreachable, "service unavailable"),
		r(ErrUnreachable, "too many requests"),
	}
}

// What GitHub says where a push has too many refs, with their number in between.
const (
	tooManyRefs    = "update more than "
	branchesOrTags = "branches or tags"
)

// Translate gives the kind of a text, and says whether the text is known at
// all: an unknown one is ErrUnreadable.
func Translate(text string) (known bool, kind error) {
	t := strings.ToLower(text)
next:
	for _, r := range errorRules() {
		for _, p := range r.parts {
			if !strings.Contains(t, p) {
				continue next
			}
		}
		return true, r.kind
	}
	return false, ErrUnreadable
}

// TranslateRefusal gives the kind and the detail of a refused update: reason is
// what the report says of the ref, text what the server told people beside it.
func TranslateRefusal(ref, reason, text string) (detail string, kind error) {
	saying := TellingLine(ref, text)
	if _, kind := Translate(text); errors.Is(kind, ErrSecretRefused) {
		return joinDetail(reason, saying), kind
	}
	if line, _, ok := TooManyRefs(text + "\n" + reason); ok {
		return joinDetail(reason, line), ErrTooManyRefs
	}
	known, kind := Translate(reason)
	generic := !known || strings.Contains(reason, "hook declined") || strings.Contains(reason, "abnormal exit") ||
		strings.Contains(reason, "rule violations")
	vague := strings.Contains(reason, "atomic") || reason == "failed to update ref"
	if !generic && !vague {
		return OneLine(reason), kind
	}
	if ok, said := Translate(saying); ok && (generic || errors.Is(said, ErrInvalid) || errors.Is(said, ErrReadOnly)) && !hookErred(reason, saying) {
		return joinDetail(reason, saying), said
	}
	if !known {
		// A server refuses a well-formed update for a rule of its own.
		return joinDetail(reason, saying), ErrProtected
	}
	if vague && !namesRef(saying, ref) {
		return OneLine(reason), kind
	}
	return joinDetail(reason, saying), kind
}

// TooManyRefs finds the line that says that a push had more refs than the server takes, and
// how many it takes; 0: it doesn't say. Said of each ref of a large push, the line may stand
// far behind what a message has room for.
func TooManyRefs(text string) (line string, most int, ok bool) {
	for line := range strings.Lines(text) {
		_, after, found := strings.Cut(strings.ToLower(line), tooManyRefs)
		if !found || !strings.Contains(after, branchesOrTags) {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(after), " ")
		most, _ = strconv.Atoi(number)
		return strings.Trim(OneLine(line), "- "), max(most, 0), true
	}
	return "", 0, false
}

// hookErred tells a hook that says no by failing itself: Gitea's does where a job pushes
// to a protected branch, and trying again changes nothing.
func hookErred(reason, saying string) bool {
	return strings.Contains(reason, "hook declined") && strings.Contains(saying, "Internal Server Error")
}

func joinDetail(reason, saying string) string {
	if saying == "" || strings.Contains(saying, reason) {
		return OneLine(cmp.Or(saying, reason))
	}
	return OneLine(reason + ": " + saying)
}

// namesRef reports whether a line is about that ref.
func namesRef(line, ref string) bool {
	return strings.Contains(line, ref+"'") || strings.Contains(line, ref+" ") || strings.HasSuffix(line, ref)
}

// TellingLine picks what a person should read out of a server's text: the line
// about the ref, or else what is an error, without progress and decoration.
func TellingLine(ref, text string) string {
	var errs, other []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "remote:"))
		if strings.Trim(line, "-—=*# ") == "" || line == "error:" || isProgress(line) {
			continue
		}
		if strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "fatal:") {
			if namesRef(line, ref) && strings.Contains(line, "cannot lock ref") {
				return OneLine(line)
			}
			errs = append(errs, line)
			continue
		}
		other = append(other, line)
	}
	return OneLine(strings.Join(append(errs, other...), " "))
}

func isProgress(line string) bool {
	for _, p := range []string{"Resolving deltas", "Unpacking objects", "Counting objects", "Compressing objects", "Checking connectivity", "Enumerating objects", "Processing "} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}
