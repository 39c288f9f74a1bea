#!/usr/bin/env bash
# Gitea calls a run done while jobs of it have yet to begin, or still run.
#
# Version: code.gitea.io/gitea v1.26.0, AggregateJobStatus of models/actions, which says what
# a run's status is. Its API shows "done" as status: completed.
# Seen on 2026-11-28, for the statuses of a run's jobs:
#   failure blocked     failure, done       a job failed, and `if: failure()` waits for it
#   failure waiting     waiting, not done   the same run a moment later
#   success blocked     blocked, not done
#   failure running     running, not done
#   cancelled running   cancelled, done     the job of `if: always()` is at work
# So whoever polls GET /repos/{owner}/{repo}/actions/runs until a run is completed may be told
# so too early, and sees the same run queued again. On GitHub a completed run stays so.
# GET /repos/{owner}/{repo}/actions/jobs tells.
# Needs: bash, go 1.26, and access to a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

# In a copy of its module, whose go.mod replaces some of what it needs.
dir=$(go mod download -json code.gitea.io/gitea@v1.26.0 | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
cp -r "$dir" gitea
chmod -R u+w gitea
cd gitea
mkdir finding
cat >finding/main.go <<'END'
package main

import (
	"fmt"

	"code.gitea.io/gitea/models/actions"
)

func main() {
	for _, jobs := range [][]actions.Status{
		{actions.StatusFailure, actions.StatusBlocked},
		{actions.StatusFailure, actions.StatusWaiting},
		{actions.StatusSuccess, actions.StatusBlocked},
		{actions.StatusFailure, actions.StatusRunning},
		{actions.StatusCancelled, actions.StatusRunning},
	} {
		var run []*actions.ActionRunJob
		for _, status := range jobs {
			run = append(run, &actions.ActionRunJob{Status: status})
		}
		all := actions.AggregateJobStatus(run)
		fmt.Println(jobs[0], jobs[1], "->", all, "done:", all.IsDone())
	}
}
END
seen=$(go run ./finding)
printf '%s\n' "$seen"

expected="failure blocked -> failure done: true
failure waiting -> waiting done: false
success blocked -> blocked done: false
failure running -> running done: false
cancelled running -> cancelled done: true"
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
