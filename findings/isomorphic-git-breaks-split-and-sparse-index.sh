#!/usr/bin/env bash
# From a split or a sparse index isomorphic-git commits a tree that git can't read.
#
# Versions: isomorphic-git 1.44.19 (npm), go-git v6.0.0-beta.1 (Go), git 2.39.5.
# Seen on 2026-11-29. Git writes both forms, by `git update-index --split-index` and by
#   `git sparse-checkout set --sparse-index`. It marks each by an extension with a lower-case name
#   (`link`, `sdir`), and its format says that whoever doesn't know such a name must refuse the file.
#   go-git refuses both: "unknown extension".
#   isomorphic-git refuses neither. It lists a file named by a null byte, or one named `d/`, and its
#     commit succeeds. Git then says of HEAD "empty filename in tree entry", and can neither list
#     nor push it.
#   Its statusMatrix, which reads, also writes the sparse index again, without the mark.
# So before isomorphic-git commits in a repository that people set up, look for `index.sparse` in
#   git's settings and for .git/sharedindex.* files.
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
const dir = process.argv[2];
console.log('isomorphic-git lists:', JSON.stringify(await git.listFiles({fs, dir})));
const before = fs.readFileSync(dir + '/.git/index', 'latin1');
await git.statusMatrix({fs, dir});
const after = fs.readFileSync(dir + '/.git/index', 'latin1');
console.log('mark after its status:', /link|sdir/.test(before), '->', /link|sdir/.test(after));
await git.commit({fs, dir, message: 'second', author: {name: 'A', email: 'a@example.com'}});
END

cat >go.mod <<'END'
module finding

go 1.26

require github.com/go-git/go-git/v6 v6.0.0-beta.1
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/go-git/go-git/v6"
)

func main() {
	repository, err := git.PlainOpen(os.Args[1])
	if err == nil {
		_, err = repository.Storer.Index()
	}
	fmt.Println("go-git:", err)
}
END
GOFLAGS=-mod=mod go build -o go-git . 2>/dev/null

try() { # FORM
	local dir=$1
	echo "$dir"
	git init -q "$dir"
	mkdir "$dir/d"
	echo one >"$dir/a"
	echo two >"$dir/d/b"
	git -C "$dir" add .
	git -C "$dir" -c user.name=A -c user.email=a@example.com commit -q -m first
	case $dir in
	split) git -C "$dir" update-index --split-index ;;
	sparse) git -C "$dir" sparse-checkout set --cone --sparse-index e ;;
	esac

	echo "git lists: $(git -C "$dir" ls-files | paste -sd ' ')"
	./go-git "$dir"
	node commit.mjs "$dir"
	echo "git: $(git -C "$dir" ls-tree -r HEAD 2>&1 | grep fatal)"
	git init -q --bare "$dir.git"
	git -C "$dir" push -q "../$dir.git" HEAD >/dev/null 2>&1 && echo pushed || echo "not pushed"
}

seen=$(
	try split
	try sparse
)
printf '%s\n' "$seen"

expected='split
git lists: a d/b
go-git: index decoder: unknown extension
isomorphic-git lists: ["\u0000"]
mark after its status: true -> true
git: fatal: empty filename in tree entry
not pushed
sparse
git lists: a d/b
go-git: index decoder: unknown extension
isomorphic-git lists: ["a","d/"]
mark after its status: true -> false
git: fatal: empty filename in tree entry
not pushed'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
