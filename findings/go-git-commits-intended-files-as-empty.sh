#!/usr/bin/env bash
# A file that `git add -N` only announces is committed by go-git, as an empty file.
#
# Versions: go-git v5.19.3 and v6.0.0-beta.1 (Go), isomorphic-git 1.44.19 (npm), git 2.39.5.
# Seen on 2026-11-29. Of two new files one is added, and one is marked by `git add --intent-to-add`:
#   git             commits the added file, and keeps the other's mark.
#   isomorphic-git  the same.
#   go-git, both    commit both: the added file whole, the marked one with no content. After that git
#                   has the marked one staged for deletion, so the next commit takes it out again.
# go-git reads the mark (`IntentToAdd` of the index's entry), and its commit does not look at it.
# jj marks every new file so in a repository that it shares with git (its pull request 6127; not run).
# So whoever commits by go-git what people have staged must leave marked entries out first.
# Needs: bash, git, node, npm, go 1.26, and access to the npm registry and a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

npm init -y >/dev/null
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19
cat >commit.mjs <<'END'
import git from 'isomorphic-git';
import fs from 'node:fs';
await git.commit({fs, dir: process.argv[2], message: 'second', author: {name: 'A', email: 'a@example.com'}});
END

build_go_git() { # MAJOR VERSION
	mkdir "v$1"
	cat >"v$1/go.mod" <<-END
		module finding

		go 1.26

		require github.com/go-git/go-git/v$1 $2
	END
	cat >"v$1/main.go" <<-END
		package main

		import (
			"log"
			"os"

			"github.com/go-git/go-git/v$1"
			"github.com/go-git/go-git/v$1/plumbing/object"
		)

		func main() {
			repository, err := git.PlainOpen(os.Args[1])
			if err != nil {
				log.Fatal(err)
			}
			worktree, err := repository.Worktree()
			if err != nil {
				log.Fatal(err)
			}
			author := &object.Signature{Name: "A", Email: "a@example.com"}
			if _, err := worktree.Commit("second", &git.CommitOptions{Author: author}); err != nil {
				log.Fatal(err)
			}
		}
	END
	(cd "v$1" && GOFLAGS=-mod=mod go build -o ../commit-v"$1" . 2>/dev/null)
}
build_go_git 5 v5.19.3
build_go_git 6 v6.0.0-beta.1

try() { # NAME COMMAND...
	local dir=$1
	shift
	git init -q "$dir"
	git -C "$dir" config user.name A
	git -C "$dir" config user.email a@example.com
	git -C "$dir" commit -q --allow-empty -m first
	echo text >"$dir/added"
	echo text >"$dir/marked"
	git -C "$dir" add added
	git -C "$dir" add --intent-to-add marked
	"$@"
	echo "$dir committed: $(git -C "$dir" ls-tree -l HEAD | awk '{print $5 " of " $4 " bytes"}' | paste -sd,)"
	echo "$dir, status: $(git -C "$dir" status --short | paste -sd,)"
}

seen=$(
	try git git -C git commit -q -m second
	try isomorphic-git node commit.mjs isomorphic-git
	try go-git-5 ./commit-v5 go-git-5
	try go-git-6 ./commit-v6 go-git-6
)
printf '%s\n' "$seen"

expected='git committed: added of 5 bytes
git, status:  A marked
isomorphic-git committed: added of 5 bytes
isomorphic-git, status:  A marked
go-git-5 committed: added of 5 bytes,marked of 0 bytes
go-git-5, status: DA marked
go-git-6 committed: added of 5 bytes,marked of 0 bytes
go-git-6, status: DA marked'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
