#!/usr/bin/env bash
# In act a missing value is both equal to null and not equal to null.
#
# Versions: nektos/act v0.2.89 (Go), @actions/expressions 0.3.61 (npm, GitHub's evaluator).
# Seen on 2026-11-28, for a key that the event does not have:
#   github.event.x == null    GitHub true    act true
#   github.event.x != null    GitHub false   act true
# So a workflow's `if: github.event.x != null` runs its job under act, and is skipped on
#   GitHub. Truthiness (`if: github.event.x`) agrees in both.
# Needs: bash, node, npm, go, and access to the npm registry and a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund @actions/expressions@0.3.61 esbuild@0.25.0
cat >github.mjs <<'END'
import {Lexer, Parser, Evaluator, data} from '@actions/expressions';
const event = {key: 'event', value: new data.Dictionary()};
const context = new data.Dictionary({key: 'github', value: new data.Dictionary(event)});
for (const text of process.argv.slice(2)) {
  const tree = new Parser(new Lexer(text).lex().tokens, ['github'], []).parse();
  console.log(text + ': ' + new Evaluator(tree, context).evaluate().value);
}
END
npx esbuild github.mjs --bundle --platform=node --format=cjs --outfile=github.cjs --log-level=error

cat >go.mod <<'END'
module finding

go 1.24

require github.com/nektos/act v0.2.89
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"github.com/nektos/act/pkg/exprparser"
	"github.com/nektos/act/pkg/model"
)

func main() {
	environment := &exprparser.EvaluationEnvironment{Github: &model.GithubContext{Event: map[string]any{}}}
	interpreter := exprparser.NewInterpeter(environment, exprparser.Config{})
	for _, text := range os.Args[1:] {
		value, err := interpreter.Evaluate(text, exprparser.DefaultStatusCheckNone)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %v\n", text, value)
	}
}
END
GOFLAGS=-mod=mod go build -o act .

texts=("github.event.x == null" "github.event.x != null" "github.event.x && 'runs' || 'skipped'")
seen=$(printf 'GitHub\n' && node github.cjs "${texts[@]}" && printf 'act\n' && ./act "${texts[@]}")
printf '%s\n' "$seen"

expected="GitHub
github.event.x == null: true
github.event.x != null: false
github.event.x && 'runs' || 'skipped': skipped
act
github.event.x == null: true
github.event.x != null: true
github.event.x && 'runs' || 'skipped': skipped"
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
