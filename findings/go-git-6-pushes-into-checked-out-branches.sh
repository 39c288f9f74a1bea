#!/usr/bin/env bash
# go-git 6 pushes to a repository on disk without git: no hook runs, and a checked-out branch moves.
#
# Versions: go-git v5.19.3 and v6.0.0-beta.1 (Go), git 2.39.5.
# Seen on 2026-11-29. A push adds a file to the branch that a repository has checked out, by a file:// URL:
#                                       git, go-git 5             go-git 6
#   receive.denyCurrentBranch unset     refused                   taken. The file is missing there, and
#                                                                 the next commit would delete it.
#   denyCurrentBranch = updateInstead   taken, the file is there  taken, the file is missing
#   a post-receive hook                 runs                      doesn't run
# go-git 5 starts `git receive-pack` for such URLs. go-git 6 does the work in its own process, and reads
#   neither the repository's hooks nor its receive settings. It returns no error.
# So a program that moves to version 6 needs another way to start what hooks did, and must not push to a
#   folder that somebody works in.
# Needs: bash, git, go 1.26, and access to a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export GIT_CONFIG_GLOBAL=$work/config GIT_CONFIG_NOSYSTEM=1
git config --global user.name A
git config --global user.email a@example.com

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
			"github.com/go-git/go-git/v$1/config"
		)

		func main() {
			repository, err := git.PlainOpen("source")
			if err != nil {
				log.Fatal(err)
			}
			remote, err := repository.CreateRemote(&config.RemoteConfig{Name: os.Args[2], URLs: []string{os.Args[1]}})
			if err != nil {
				log.Fatal(err)
			}
			specs := []config.RefSpec{"refs/heads/main:refs/heads/main"}
			if err := remote.Push(&git.PushOptions{RemoteName: os.Args[2], RefSpecs: specs}); err != nil {
				log.Fatal(err)
			}
		}
	END
	(cd "v$1" && GOFLAGS=-mod=mod go build -o ../push-v"$1" . 2>/dev/null)
}
build_go_git 5 v5.19.3
build_go_git 6 v6.0.0-beta.1
push_git() { git -C source push -q "$1" main; }

git init -q -b main source
git -C source commit -q --allow-empty -m first

try() { # NAME SETTING COMMAND...
	local name=$1 target=target-$1-$2
	git clone -q "file://$work/before" "$target"
	[ "$2" = unset ] || git -C "$target" config receive.denyCurrentBranch "$2"
	printf '#!/bin/sh\necho ran >>hook\n' >"$target/.git/hooks/post-receive"
	chmod +x "$target/.git/hooks/post-receive"
	local pushed=refused file=missing hook="did not run"
	"${@:3}" "file://$work/$target" "$target" >/dev/null 2>&1 && pushed=taken
	[ ! -e "$target/file" ] || file="there"
	[ ! -e "$target/.git/hook" ] || hook=ran
	echo "$name, $2: $pushed, file $file, hook $hook, status: $(git -C "$target" status --short)"
}

cp -r source before
echo text >source/file
git -C source add file
git -C source commit -q -m second
seen=$(
	for setting in unset updateInstead; do
		try git "$setting" push_git
		try go-git-5 "$setting" ./push-v5
		try go-git-6 "$setting" ./push-v6
	done
)
printf '%s\n' "$seen"

expected='git, unset: refused, file missing, hook did not run, status: 
go-git-5, unset: refused, file missing, hook did not run, status: 
go-git-6, unset: taken, file missing, hook did not run, status: D  file
git, updateInstead: taken, file there, hook ran, status: 
go-git-5, updateInstead: taken, file there, hook ran, status: 
go-git-6, updateInstead: taken, file missing, hook did not run, status: D  file'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
