package fault

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// This file is the only place where text from servers, from git and from ssh
// becomes one of the Err… kinds.

// rule gives a kind to texts that hold one of these. "…" stands between parts that a text
// holds all, in any order.
type rule struct {
	kind  error
	texts []string // lower case
}

// errorRules are tried in order: the more special text first. The table is a
// function because a package holds no state.
func errorRules() []rule {
	return []rule{
		// What git's servers say to a client that asks in SHA-1.
		{ErrSHA256, []string{"mismatched object format: server sha256", "unsupported object format 'sha1'"}},
		// What git says in a partial clone that it may not complete by itself.
		{ErrPromised, []string{"from promisor remote", "lazy fetching disabled"}},
		// Push protection: GitHub (GH013 with a section of its own), GitLab, Bitbucket.
		{ErrSecretRefused, []string{
			"push protection…secret", "cannot contain secrets", "push blocked: secret",
			"secret scanning found", "declined due to a detected secret", "secrets detected in",
		}},
		// GitHub's push policy (GH013, once for each ref of the push). It counts deletions, and
		// refs outside of branches and tags, too.
		{ErrTooManyRefs, []string{tooManyRefs + "…" + branchesOrTags}},
		// Rules about commits, hidden refs and sizes, each with a mend of its own. GitHub, GitLab, Gitea.
		{ErrUnsigned, []string{
			"must have verified signatures", "commit must be signed", "commits must be signed", "protected from unverified commit",
		}},
		{ErrHidden, []string{
			"deny updating a hidden ref", "deny deleting a hidden ref", "not allowed to access some of the refs",
		}},
		{ErrTooLarge, []string{
			"exceeds maximum allowed size", "file size limit", "gh001", "larger than the allowed size", "blobs which exceed",
		}},
		// Ref names that can't stand beside each other: trying again won't help.
		{ErrInTheWay, []string{"exists; cannot create"}},
		{ErrInvalid, []string{"funny refname", "trying to write non-commit object", "not a valid ref name"}},
		// Files of the server's that git can't write: trying again won't help either.
		{ErrReadOnly, []string{
			"read-only file system", "unable to create temporary object directory", "unable to migrate objects to permanent storage",
			"insufficient permission for adding an object", "unable to create…permission denied", "cannot lock ref…permission denied",
		}},
		// Someone else was first. The client is Azure DevOps' (TF401028).
		{ErrLostRace, []string{
			"stale info", "failed to update ref", "failed to delete", "failed to lock", "cannot lock ref", "unable to lock",
			"reference already exists", "incorrect old value", "but expected", "fetch first", "updated by another client",
			"remote ref…does not match", "atomic transaction failed", "atomic push fail", "transaction aborted",
			// JGit and go-git.
			"invalid old id", "changed concurrently",
		}},
		// GitLab's text for a missing project speaks of permission too.
		{ErrNotFound, []string{"project you were looking for could not be found"}},
		// What the credentials may not do.
		{ErrDenied, []string{
			"refusing to allow…workflow", "permission denied", "permission to …denied to", "write access to repository not granted",
			"not allowed to push code to this project", "you don't have permission", "you don't have access", "not allowed to download code",
			"archived so it is read-only", "repository was archived", "authentication failed", "invalid username or", "access denied",
			"is not allowed to access", "marked as read only", "host key verification failed", "dubious ownership", "unsafe repository",
			"could not read username", "service not enabled", "saml sso",
		}},
		// Branch rules and hooks. The pull request is Azure DevOps' (TF402455).
		{ErrProtected, []string{
			"protected branch", "repository rule violations", "gh006", "gh013", "hook declined", "hook failed",
			"currently checked out", "deletion prohibited", "deletion of the current branch prohibited", "non-fast-forward",
			"not allowed to push", "not allowed to force push", "not permitted; you must use a pull request",
		}},
		// What isn't there.
		{ErrNotFound, []string{
			"not our ref", "want …not valid", "wants invalid object", "missing necessary objects", "unresolved delta", "bad pack header…missing", "repository not found",
			"repository…does not exist", "does not appear to be a git repository", "not a git repository", "no such project",
			"could not find repository", "not found…repositor", "no such file or directory",
		}},
		// The way there.
		{ErrNoWay, []string{"could not resolve host…not known", "could not resolve host…no address associated"}},
		{ErrUnreachable, []string{
			"could not resolve host", "connection refused", "connection timed out", "operation timed out", "connection closed",
			"connection reset", "no route to host", "network is unreachable", "abnormal exit", "no space left on device",
			"internal server error", "internal api unreachable", "service unavailable", "too many requests",
		}},
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
	text = strings.ToLower(text)
	lacks := func(part string) bool { return !strings.Contains(text, part) }
	for _, r := range errorRules() {
		for _, t := range r.texts {
			if !slices.ContainsFunc(strings.Split(t, "…"), lacks) {
				return true, r.kind
			}
		}
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
	if reason == "already exists" || reason == "no such ref" {
		// JGit, of a ref to be made or moved. In longer texts these words mean other things.
		return reason, ErrLostRace
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
	if !known && strings.HasPrefix(reason, "unpack ") {
		return joinDetail(reason, saying), ErrUnpack
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

// TellsRace reports whether the words of a lost race say that somebody else is at the ref: that they
// lock it, as git and JGit say it, or that it has another value.
func TellsRace(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "unable to create") || strings.Contains(text, "to lock") || strings.Contains(text, "but expected")
}

// inTheWay begins what git says of a ref that keeps another one from being made, behind its name.
const inTheWay = "' exists; cannot create '"

// RefInTheWay is the ref that keeps another one from being made, as a server's text names it;
// empty: it names none.
func RefInTheWay(text string) string {
	before, _, found := strings.Cut(text, inTheWay)
	if !found {
		return ""
	}
	return before[strings.LastIndexByte(before, '\'')+1:]
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
