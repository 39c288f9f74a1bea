#!/usr/bin/env bash
# Two pushes that git's server refuses are taken by go-git's, and nobody can clone all branches after either.
#
# Versions: go-git v6.0.0-beta.1 (Go, package backend), git 2.39.5 as the client and to compare.
# Seen on 2026-11-29, with a repository whose refs are packed (`git pack-refs`, part of `git gc`):
#   A clone of depth 1 pushes to a repository without that history, as a job does to a mirror.
#     git     refuses: "shallow update not allowed".
#     go-git  reports success. It stores the commit without its parents, and from then on answers
#             every clone of all branches with status 500. A clone of main alone works.
#   A client pushes topic/one beside the branch topic.
#     git     refuses.
#     go-git  reports success: only a loose ref would be in the way of the new file. It lists both
#             branches, and git's clone ends: it "cannot process" the two "at the same time".
# Also seen: go-git's server wants an Authorization header of a push, with any content. Its status 401
#   names no scheme, so git doesn't send credentials from the URL. This script sets the header.
# So such a server needs checks of its own before it stores a ref.
# Needs: bash, git, go 1.26, and access to a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export GIT_CONFIG_GLOBAL=$work/config GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
git config --global user.name A
git config --global user.email a@example.com
git config --global http.extraHeader 'Authorization: Basic YTpi'

cat >go.mod <<'END'
module finding

go 1.26

require github.com/go-git/go-git/v6 v6.0.0-beta.1
END
cat >main.go <<'END'
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/go-git/go-billy/v6/osfs"
	"github.com/go-git/go-git/v6/backend"
	"github.com/go-git/go-git/v6/plumbing/transport"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("address", []byte(listener.Addr().String()), 0o600); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, backend.New(transport.NewFilesystemLoader(osfs.New("served"), false))))
}
END
go mod tidy >/dev/null 2>&1
go build -o server .
mkdir served
./server &
server=$!
while [ ! -s address ]; do sleep 0.1; done

git init -q -b main source
git -C source commit -q --allow-empty -m first
git -C source commit -q --allow-empty -m second
git -C source commit -q --allow-empty -m third
git clone -q --depth 1 "file://$work/source" shallow

try() { # NAME URL
	for push in shallow topic; do
		git init -q -b main --bare "served/$1-$push"
		git -C source push -q "$2-$push" HEAD~2:refs/heads/main HEAD~2:refs/heads/topic
		git -C "served/$1-$push" pack-refs --all
		if [ "$push" = shallow ]; then
			git -C shallow push -q "$2-$push" HEAD:refs/heads/other >log 2>&1 && pushed=taken || pushed=refused
		else
			git -C source push -q "$2-$push" HEAD:refs/heads/topic/one >log 2>&1 && pushed=taken || pushed=refused
		fi
		echo "$1, push $push: $pushed$(grep -o 'shallow update not allowed' log | sed 's/^/: /')"
		rm -rf clone one
		git clone -q "$2-$push" clone 2>log && echo "  clone: ok" ||
			echo "  clone: $(grep -oE 'error: 500|cannot process' log)"
		git clone -q --single-branch -b main "$2-$push" one
		echo "  clone of main: ok"
	done
}
seen=$(
	try git "file://$work/served/git"
	try go-git "http://$(cat address)/go-git"
)
printf '%s\n' "$seen"

expected='git, push shallow: refused: shallow update not allowed
  clone: ok
  clone of main: ok
git, push topic: refused
  clone: ok
  clone of main: ok
go-git, push shallow: taken
  clone: error: 500
  clone of main: ok
go-git, push topic: taken
  clone: cannot process
  clone of main: ok'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
