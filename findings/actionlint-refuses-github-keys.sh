#!/usr/bin/env bash
# GitHub's own workflow parser takes keys that actionlint refuses as syntax errors.
#
# Versions: @actions/workflow-parser 0.3.61 (npm), actionlint v1.7.12 (Go).
# Seen on 2026-11-28: a workflow file with a top-level `description`, a job's
#   `cancel-timeout-minutes`, a concurrency group's `queue: max` or a `parallel` step passes
#   GitHub's parser without an error. actionlint reports each as [syntax-check]. Both take a
#   schedule's `timezone`, which is as new.
# So a program that judges files by actionlint needs a table of the keys that it lacks.
# Also seen: the parser states "node >= 20", but Node can't import it: one of its modules
#   imports a JSON file without an import attribute. A bundler must come first.
# Needs: bash, node, npm, go, and access to the npm registry and a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund @actions/workflow-parser@0.3.61 esbuild@0.25.0
GOBIN=$work/bin GOFLAGS='' go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

write_workflow() { # NAME TOP-LEVEL-LINES EVENT-LINES JOB-LINES STEP-LINES
	printf 'name: x\n%bon:\n  schedule:\n    - cron: "17 3 * * 1"\n%bjobs:\n  a:\n    runs-on: ubuntu-latest\n%b    steps:\n      - %b\n' \
		"$2" "$3" "$4" "$5" >"$1.yml"
}
write_workflow plain '' '' '' 'run: echo'
write_workflow timezone '' '      timezone: Europe/Berlin\n' '' 'run: echo'
write_workflow description 'description: hello\n' '' '' 'run: echo'
write_workflow cancel-timeout '' '' '    cancel-timeout-minutes: 3\n' 'run: echo'
write_workflow queue 'concurrency:\n  group: g\n  queue: max\n' '' '' 'run: echo'
write_workflow parallel '' '' '' 'parallel:\n          - run: echo a\n          - run: echo b'

cat >parse.mjs <<'END'
import fs from 'node:fs';
import {parseWorkflow, NoOperationTraceWriter} from '@actions/workflow-parser';
const content = fs.readFileSync(process.argv[2], 'utf8');
const parsed = parseWorkflow({name: 'w.yml', content}, new NoOperationTraceWriter());
console.log(parsed.context.errors.getErrors().length);
END

import=taken
node parse.mjs plain.yml >/dev/null 2>&1 || import=refused
npx esbuild parse.mjs --bundle --platform=node --format=cjs --outfile=parse.cjs --log-level=error

seen="import without a bundler: $import"$'\n'
for file in plain timezone description cancel-timeout queue parallel; do
	lint=$(bin/actionlint -shellcheck= -pyflakes= -oneline "$file.yml" | grep -c 'syntax-check' || true)
	seen+="$file: parser $(node parse.cjs "$file.yml"), actionlint $lint"$'\n'
done
printf '%s' "$seen"

expected='import without a bundler: refused
plain: parser 0, actionlint 0
timezone: parser 0, actionlint 0
description: parser 0, actionlint 1
cancel-timeout: parser 0, actionlint 1
queue: parser 0, actionlint 1
parallel: parser 0, actionlint 1
'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s' "$expected") <(printf '%s' "$seen")
	exit 1
fi
