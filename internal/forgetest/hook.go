package forgetest

import (
	"bytes"
	"strconv"
	"strings"
)

// declined is what git says of every ref that a pre-receive hook refused.
const declined = "pre-receive hook declined"

// githubWords and giteaWords begin the hook: how the forge says no to a push of a ref, and
// whether it looks at the workflow files of a job's push. A line "reason: …" becomes the
// reason that the push's report gives for each ref. Gitea's own hook fails where a job
// pushes to a protected branch, and says nothing else.
const (
	githubWords = `#!/bin/sh
job=$HTTP_X_FORGETEST_APP
violation() {
	echo "error: GH013: Repository rule violations found for $1." >&2
	echo >&2
	echo "- $2" >&2
	echo >&2
	echo "reason: push declined due to repository rule violations" >&2
	exit 1
}
`
	giteaWords = `#!/bin/sh
job=
violation() {
	words="Not allowed to push to protected branch ${1#refs/heads/}"
	case "$2" in
	"GITHUB PUSH PROTECTION: "*) words=$2 ;;
	*) if [ -n "$HTTP_X_FORGETEST_APP" ]; then words="Internal Server Error (no message for end users)"; fi ;;
	esac
	printf 'error:\nerror: %s\nerror:\n' "$words" >&2
	exit 1
}
`
)

// hook is the rest of the repository's pre-receive hook.
const hook = `
zero=0000000000000000000000000000000000000000
empty=4b825dc642cb6eb9a060e54bf8d69288fbee4904
rules=forgetest/protected
secret=forgetest/secret
if [ -z "$job" ] && [ ! -s "$rules" ] && [ ! -s "$secret" ]; then exit 0; fi

while read -r old new ref; do
	if [ -s "$rules" ]; then
		while IFS='	' read -r pattern message; do
			case "$ref" in $pattern) violation "$ref" "$message" ;; esac
		done <"$rules"
	fi
	if [ "$new" = "$zero" ]; then continue; fi
	if [ -s "$secret" ] && git log -p --no-color --format= "$new" --not --all | grep -qF -f "$secret"; then
		violation "$ref" "GITHUB PUSH PROTECTION: Push cannot contain secrets"
	fi
	case "$ref" in refs/heads/*) ;; *) continue ;; esac
	if [ -z "$job" ]; then continue; fi
	# A job's token may not bring in workflow files that the default branch hasn't.
	if ! git rev-parse --quiet --verify "$new:.github/workflows" >/dev/null; then continue; fi
	base=$old
	if [ "$base" = "$zero" ]; then base=$(git merge-base "$new" "HEAD" 2>/dev/null || echo "$empty"); fi
	git diff-tree -r --no-renames --diff-filter=AMT --name-only "$base" "$new" -- .github/workflows | while read -r file; do
		if [ "$(git rev-parse --quiet --verify "$new:$file")" != "$(git rev-parse --quiet --verify "HEAD:$file")" ]; then
			echo "reason: refusing to allow a GitHub App to create or update workflow ` + "\\`$file\\` without \\`workflows\\`" + ` permission" >&2
			exit 1
		fi
	done || exit 1
done
exit 0
`

// tellReason rewrites the answer to a push that the hook refused: the hook's reason
// stands where git says that a hook declined.
func tellReason(body []byte) []byte {
	report, said, banded := unband(body)
	reason := ""
	var kept []string
	for line := range strings.Lines(said) {
		if why, ok := strings.CutPrefix(line, "reason: "); ok {
			reason = strings.TrimSpace(why)
			continue
		}
		kept = append(kept, line)
	}
	if reason == "" {
		return body
	}
	var told bytes.Buffer
	for _, line := range packets(report) {
		if line == nil {
			told.WriteString("0000")
			continue
		}
		told.Write(packet(bytes.ReplaceAll(line, []byte(declined), []byte(reason))))
	}
	if !banded {
		return told.Bytes()
	}
	var out bytes.Buffer
	if text := strings.Join(kept, ""); text != "" {
		out.Write(packet(append([]byte{2}, text...)))
	}
	out.Write(packet(append([]byte{1}, told.Bytes()...)))
	out.WriteString("0000")
	return out.Bytes()
}

// unband divides an answer into the report and what was printed. Without side bands
// all of it is the report.
func unband(body []byte) (report []byte, said string, banded bool) {
	var printed bytes.Buffer
	for _, p := range packets(body) {
		switch {
		case len(p) == 0:
		case p[0] == 1:
			report, banded = append(report, p[1:]...), true
		case p[0] == 2:
			printed.Write(p[1:])
			banded = true
		}
	}
	if !banded {
		return body, "", false
	}
	return report, printed.String(), true
}

// packets reads pkt-lines; nil stands for a flush.
func packets(b []byte) [][]byte {
	var list [][]byte
	for len(b) >= 4 {
		n, err := strconv.ParseUint(string(b[:4]), 16, 16)
		if err != nil || int(n) > len(b) {
			return list
		}
		if n < 4 {
			list, b = append(list, nil), b[4:]
			continue
		}
		list, b = append(list, b[4:n]), b[n:]
	}
	return list
}

// packet writes one pkt-line.
func packet(p []byte) []byte {
	const hex = "0123456789abcdef"
	n := len(p) + 4
	return append([]byte{hex[n>>12&15], hex[n>>8&15], hex[n>>4&15], hex[n&15]}, p...)
}
