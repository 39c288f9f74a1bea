#!/usr/bin/env bash
# In a linked worktree isomorphic-git's commit succeeds, and git never sees it.
#
# Versions: isomorphic-git 1.44.19 (npm), git 2.39.5.
# Seen on 2026-11-29, in a folder that `git worktree add` made on a branch with one commit:
#   add and commit report success. The commit has no parent, although the branch has a commit.
#   isomorphic-git's log then shows this one commit. Git shows the one from before, and says that
#     it doesn't have the new commit.
#   The commit, its tree and a branch of the same name lie below .git/worktrees/NAME, where git
#     keeps neither objects nor branches: `git worktree remove` deletes them, without --force once
#     the folder is clean.
# It follows the file `.git` to .git/worktrees/NAME, and does not read `commondir` there.
# So a tool that works in worktrees can't commit with it, and gets no error that says so.
# Needs: bash, git, node, npm, and access to the npm registry.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

npm init -y >/dev/null
npm install --silent --no-audit --no-fund isomorphic-git@1.44.19
cat >commit.mjs <<'END'
import git from 'isomorphic-git';
import fs from 'node:fs';
const dir = 'tree';
const author = {name: 'A', email: 'a@example.com', timestamp: 1700000000, timezoneOffset: 0};
await git.add({fs, dir, filepath: 'new'});
const oid = await git.commit({fs, dir, message: 'second', author});
const commits = await git.log({fs, dir});
fs.writeFileSync('oid', oid);
console.log('isomorphic-git logs:', commits.map(({commit}) => commit.message.trim()).join(', '));
console.log('parents of its commit:', commits[0].commit.parent.length);
END

git init -q repository
git -C repository -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m first
git -C repository worktree add -q -b side ../tree
echo text >tree/new

seen=$(
	node commit.mjs
	echo "git logs: $(git -C tree log --format=%s)"
	echo "git's status: $(git -C tree status --short)"
	git -C tree cat-file -e "$(cat oid)" 2>/dev/null && echo "git has the commit" || echo "git lacks the commit"
	cd repository/.git
	find worktrees/tree/refs -type f
	object=$(sed 's,^..,&/,' ../../oid)
	echo "files of the commit: $(find . -path "*/$object" | sed "s,$object,OBJECT,")"
	git -C ../../tree rm -q --cached new
	rm ../../tree/new
	git worktree remove ../../tree
	echo "files of the commit after git worktree remove: $(find . -path "*/$object" | wc -l)"
)
printf '%s\n' "$seen"

expected="isomorphic-git logs: second
parents of its commit: 0
git logs: first
git's status: A  new
git lacks the commit
worktrees/tree/refs/heads/side
files of the commit: ./worktrees/tree/objects/OBJECT
files of the commit after git worktree remove: 0"
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
