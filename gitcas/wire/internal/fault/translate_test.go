package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestRefusals: what servers really say when they refuse a push. text is what
// they tell people (band 2), reason what the report says of the ref.
func TestRefusals(t *testing.T) {
	const ref = "refs/heads/main"
	for name, tc := range map[string]struct {
		reason, text string
		kind         error
		detail       string // part of it
	}{
		"native, stale": {
			"failed to update ref",
			"error: cannot lock ref 'refs/heads/main': is at 98bf7e54a615d7e23cbcf8688d22c4099a1d2240 but expected 00da1b358846ae9a8ffa71b34eb1e330e3a37e3d\n",
			ErrLostRace, "is at 98bf7e54",
		},
		"native, exists": {
			"failed to update ref", "error: cannot lock ref 'refs/heads/main': reference already exists\n", ErrLostRace, "reference already exists",
		},
		"native, atomic, culprit": {
			"atomic transaction failed", "error: cannot lock ref 'refs/heads/main': reference already exists\n", ErrLostRace, "reference already exists",
		},
		"native, atomic, bystander": {
			"atomic transaction failed", "error: cannot lock ref 'refs/heads/other': reference already exists\n", ErrLostRace, "atomic transaction failed",
		},
		"native, atomic, update hook elsewhere": {"atomic push failure", "", ErrLostRace, "atomic push failure"},
		"native, lock held": {
			"failed to update ref",
			"error: cannot lock ref 'refs/heads/main': Unable to create '/srv/r.git/refs/heads/main.lock': File exists.\n", ErrLostRace, "File exists",
		},
		"native, folder": {
			"failed to update ref",
			"error: cannot lock ref 'refs/heads/main': 'refs/heads' exists; cannot create 'refs/heads/main'\n", ErrInvalid, "cannot create",
		},
		"native, missing objects": {"missing necessary objects", "", ErrNotFound, "missing necessary objects"},
		"native, unresolved": {
			"unpack index-pack abnormal exit", "fatal: pack has 2 unresolved deltas\n", ErrNotFound, "unresolved deltas",
		},
		"native, unpack": {"unpack unpack-objects abnormal exit", "", ErrUnreachable, "abnormal exit"},
		"native, disk": {
			"unpack unpack-objects abnormal exit", "fatal: write error: No space left on device\n", ErrUnreachable, "No space left",
		},
		"native, too large": {
			"unpack index-pack abnormal exit", "fatal: pack exceeds maximum allowed size (1.00 MiB)\n", ErrProtected, "maximum allowed size",
		},
		"native, pre-receive":       {"pre-receive hook declined", "no pushes on Fridays\n", ErrProtected, "no pushes on Fridays"},
		"native, update hook":       {"hook declined", "", ErrProtected, "hook declined"},
		"native, read-only objects": {"unpack unable to create temporary object directory", "", ErrReadOnly, "temporary object directory"},
		"native, read-only below":   {"unable to migrate objects to permanent storage", "", ErrReadOnly, "migrate"},
		"native, read-only pack": {
			"unpack unpack-objects abnormal exit",
			"error: insufficient permission for adding an object to repository database ./objects\nfatal: failed to write object\n", ErrReadOnly, "insufficient permission",
		},
		"native, read-only refs": {
			"atomic transaction failed",
			"error: cannot lock ref 'refs/heads/main': Unable to create '/srv/r.git/./refs/heads/main.lock': Permission denied\n", ErrReadOnly, "Permission denied",
		},
		"native, read-only refs, alone": {
			"failed to update ref",
			"error: cannot lock ref 'refs/heads/main': Unable to create '/srv/r.git/./refs/heads/main.lock': Read-only file system\n", ErrReadOnly, "Read-only",
		},
		"native, read-only refs, bystander": {
			"atomic transaction failed",
			"error: cannot lock ref 'refs/heads/other': Unable to create '/srv/r.git/./refs/heads/other.lock': Permission denied\n", ErrReadOnly, "Permission denied",
		},
		"native, checked out": {
			"branch is currently checked out",
			"error: refusing to update checked out branch: refs/heads/main\nerror: By default, updating the current branch in a non-bare repository\n",
			ErrProtected, "checked out",
		},
		"native, non-fast-forward": {"non-fast-forward", "error: denying non-fast-forward refs/heads/main (you should pull first)\n", ErrProtected, "non-fast-forward"},
		"native, deletion":         {"deletion prohibited", "error: denying ref deletion for refs/heads/main\n", ErrProtected, "deletion prohibited"},
		"native, hidden":           {"deny updating a hidden ref", "", ErrProtected, "hidden"},
		"native, shallow":          {"shallow update not allowed", "", ErrProtected, "shallow"},

		"GitHub, stale": {
			"cannot lock ref 'refs/heads/main': is at cf2cc0c147d8215ec87d3ddaf32f0b2c58630423 but expected fdda486ad43a6e6b5dc5f2795ce27124e0686752",
			"", ErrLostRace, "but expected",
		},
		"GitHub, exists": {"cannot lock ref 'refs/heads/main': reference already exists", "", ErrLostRace, "already exists"},
		"GitHub, folder": {
			"cannot lock ref 'refs/heads/main': 'refs/heads/main/x' exists; cannot create 'refs/heads/main'", "", ErrInvalid, "cannot create",
		},
		"GitHub, protected": {
			"protected branch hook declined",
			"Resolving deltas: 100% (2/2), completed with 2 local objects.\nerror: GH006: Protected branch update failed for refs/heads/main.\nerror: Changes must be made through a pull request.\n",
			ErrProtected, "Changes must be made through a pull request",
		},
		"GitHub, ruleset": {
			"push declined due to repository rule violations",
			"error: GH013: Repository rule violations found for refs/heads/main.\nReview all repository rules at https://github.com/o/r/rules?ref=refs%2Fheads%2Fmain\n\n- Changes must be made through a pull request.\n",
			ErrProtected, "GH013",
		},
		"GitHub, too many refs": {
			"push declined due to repository rule violations", tooMany("refs/heads/main", 1, 2),
			ErrTooManyRefs, "push declined due to repository rule violations: Pushes can not update more than 2 branches or tags.",
		},
		"GitHub, far too many refs": {
			"push declined due to repository rule violations", tooMany("refs/heads/main", 20, 5),
			ErrTooManyRefs, "Pushes can not update more than 5 branches or tags.",
		},
		"GitHub, secret": {
			"push declined due to repository rule violations",
			"error: GH013: Repository rule violations found for refs/heads/main.\n\n- GITHUB PUSH PROTECTION\n  —————————————————————————————————————————\n    Resolve the following violations before pushing again\n\n    - Push cannot contain secrets\n\n     (?) Learn how to resolve a blocked push\n",
			ErrSecretRefused, "Push cannot contain secrets",
		},
		"GitHub, secret, older": {
			"pre-receive hook declined",
			"error: GH009: Secrets detected! This push failed.\n\n- GITHUB PUSH PROTECTION\n Push cannot contain secrets\n", ErrSecretRefused, "GH009",
		},
		"GitHub, file size": {
			"pre-receive hook declined",
			"error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.\nerror: File big is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB\n",
			ErrProtected, "file size limit",
		},
		"GitHub, workflow": {
			"refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission", "", ErrDenied, "workflows",
		},

		"GitLab, protected": {
			"pre-receive hook declined", "GitLab: You are not allowed to push code to protected branches on this project.\n", ErrProtected, "protected branches",
		},
		"GitLab, force": {
			"pre-receive hook declined", "GitLab: You are not allowed to force push code to a protected branch on this project.\n", ErrProtected, "force push",
		},
		"GitLab, no right": {
			"pre-receive hook declined", "GitLab: You are not allowed to push code to this project.\n", ErrDenied, "not allowed to push code",
		},
		"GitLab, refs": {
			"pre-receive hook declined", "GitLab: You are not allowed to access some of the refs!\n", ErrProtected, "some of the refs",
		},
		"GitLab, secret": {
			"pre-receive hook declined", "PUSH BLOCKED: Secrets detected in code changes\n", ErrSecretRefused, "PUSH BLOCKED",
		},
		"JGit, stale":              {"invalid old id sent", "", ErrLostRace, "invalid old id sent"},
		"JGit, exists":             {"already exists", "", ErrLostRace, "already exists"},
		"JGit, gone":               {"no such ref", "", ErrLostRace, "no such ref"},
		"JGit, another's":          {"transaction aborted", "", ErrLostRace, "transaction aborted"},
		"go-git, stale":            {"reference has changed concurrently", "", ErrLostRace, "changed concurrently"},
		"a rule with JGit's words": {"a branch of that name already exists upstream", "", ErrProtected, "upstream"},
		"GitLab, stale":            {"failed to update ref", "", ErrLostRace, "failed to update ref"},

		"Gitea, protected": {
			"pre-receive hook declined", "\nGitea: Not allowed to push to protected branch main\n", ErrProtected, "protected branch main",
		},
		"Gitea, protected from jobs": {
			"pre-receive hook declined", "error:\nerror: Internal Server Error (no message for end users)\nerror:\n", ErrProtected, "pre-receive hook declined: error: Internal",
		},
		"GitLab, out of order": {"pre-receive hook declined", "GitLab: Internal API unreachable\n", ErrUnreachable, "unreachable"},
		"Gitea, no right":      {"pre-receive hook declined", "Gitea: User permission denied for writing.\n", ErrDenied, "permission denied"},

		"Azure DevOps, stale": {
			"TF401028: The reference 'refs/heads/main' has already been updated by another client, so you cannot update it. Please try again.",
			"", ErrLostRace, "another client",
		},
		"Azure DevOps, policy": {
			"TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.", "", ErrProtected, "pull request",
		},
		"unknown": {"computer says no", "", ErrProtected, "computer says no"},
	} {
		detail, kind := TranslateRefusal(ref, tc.reason, tc.text)
		if !errors.Is(kind, tc.kind) {
			t.Errorf("%s: %v (%s), want %v", name, kind, detail, tc.kind)
		}
		if !strings.Contains(detail, tc.detail) || strings.ContainsAny(detail, "\n\r\x1b") || len(detail) > 600 {
			t.Errorf("%s: the detail is %q", name, detail)
		}
	}
}

// tooMany is what GitHub prints beside the refusal of a push of n refs.
func tooMany(ref string, n, most int) string {
	one := "error: GH013: Repository rule violations found for %s.\nReview all repository rules at https://github.com/o/r/rules?ref=main\n\n- Pushes can not update more than %d branches or tags.\n\n"
	return strings.Repeat(fmt.Sprintf(one, ref, most), n)
}

// TestTooManyRefs: the number is found, where there is one.
func TestTooManyRefs(t *testing.T) {
	for text, want := range map[string]int{
		tooMany("refs/uwf/store", 20, 5):                                   5,
		"- Pushes can not update more than two branches or tags.\n":        0,
		"- Pushes can not update more than -3 branches or tags.\n":         0,
		"Pushes can not update more than 1000 branches or tags.":           1000,
		"you need more than one approval\nto update more than a branch":    -1,
		"error: GH013: Repository rule violations found for refs/heads/a.": -1,
	} {
		line, most, ok := TooManyRefs(text)
		if ok != (want >= 0) || most != max(want, 0) || ok != strings.Contains(line, "update more than") {
			t.Errorf("%q: %q %d %t, want %d", text, line, most, ok, want)
		}
	}
}

// TestServerTexts: what servers, git and ssh say when there is no answer.
func TestServerTexts(t *testing.T) {
	for text, kind := range map[string]error{
		"upload-pack: not our ref 98bf7e54a615d7e23cbcf8688d22c4099a1d2240":                                    ErrNotFound,
		"ERROR: Repository not found.":                                                                         ErrNotFound,
		"fatal: '/srv/x.git' does not appear to be a git repository":                                           ErrNotFound,
		"remote: The project you were looking for could not be found or you don't have permission to view it.": ErrNotFound,
		"Gitea: Repository does not exist or you do not have access":                                           ErrNotFound,
		"TF401019: The Git repository with name or identifier r does not exist or you do not have permissions": ErrNotFound,
		"git@github.com: Permission denied (publickey).":                                                       ErrDenied,
		"ERROR: Permission to o/r.git denied to someone.":                                                      ErrDenied,
		"Write access to repository not granted.":                                                              ErrDenied,
		"This repository was archived so it is read-only.":                                                     ErrDenied,
		"Host key verification failed.":                                                                        ErrDenied,
		"fatal: detected dubious ownership in repository at '/srv/x.git'":                                      ErrDenied,
		"Invalid username or token. Password authentication is not supported for Git operations.":              ErrDenied,
		"access denied or repository not exported: /x":                                                         ErrDenied,
		"ssh: Could not resolve hostname example.org: Name or service not known":                               ErrUnreachable,
		"ssh: connect to host example.org port 22: Connection refused":                                         ErrUnreachable,
		"ssh: connect to host example.org port 22: Connection timed out":                                       ErrUnreachable,
		"kex_exchange_identification: Connection closed by remote host":                                        ErrUnreachable,
		"fatal: mismatched object format: server sha256; client sha1":                                          ErrSHA256,
		"fatal: error: unsupported object format 'sha1'":                                                       ErrSHA256,
		"fatal: could not fetch d14c06f8ad72a4a4c0d6c1fb0ab4d5a5ae5dbd57 from promisor remote":                 ErrPromised,
		"warning: lazy fetching disabled; some objects may not be available":                                   ErrPromised,
		"GitLab: Internal API unreachable":                                                                     ErrUnreachable,
	} {
		known, got := Translate(text)
		if !known || !errors.Is(got, kind) {
			t.Errorf("%q: %v, want %v", text, got, kind)
		}
	}
	for _, text := range []string{"", "git upload-pack: protocol error, expected to get object ID, not 'command=ls-refs'", "unknown capability 'agent=x'", "unexpected line: 'filter tree:2'"} {
		if known, kind := Translate(text); known {
			t.Errorf("%q is taken for %v", text, kind)
		}
	}
}
