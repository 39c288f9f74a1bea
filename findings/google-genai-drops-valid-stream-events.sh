#!/usr/bin/env bash
# A valid server-sent event with a line beside `data` is lost by Google's SDK for JavaScript, in silence.
#
# Versions: @google/genai 3.3.0 (npm), google.golang.org/genai v1.77.0 (Go).
# Seen on 2026-11-29. A server streams the answer "hello" in two events, and writes them in forms that
#   the standard (WHATWG HTML, server-sent events) has every client read alike:
#   a line `id` or `retry` before `data`      JavaScript: the stream ends, no text, no finish reason, no
#                                             error. Go: an error.
#   `id` after `data`, `data` on two lines    both: an error.
#   a comment alone, as a keep-alive          JavaScript: the answer. Go: an error.
# Both look for `data:` at the start of what two line ends enclose, and take the rest as JSON.
# So a gateway that speaks Google's wire must send bare `data` lines, without keep-alive comments, and a
#   stream without a finish reason is no answer.
# Needs: bash, node, npm, go 1.26, and access to the npm registry and a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund @google/genai@3.3.0
cat >server.mjs <<'END'
import http from 'node:http';
import fs from 'node:fs';

const events = [
  {candidates: [{index: 0, content: {role: 'model', parts: [{text: 'hel'}]}}]},
  {candidates: [{index: 0, content: {role: 'model', parts: [{text: 'lo'}]}, finishReason: 'STOP'}]},
].map((event) => JSON.stringify(event));
const forms = {
  'data': (data) => `data: ${data}\n\n`,
  'comment-alone': (data) => `: keep-alive\n\ndata: ${data}\n\n`,
  'id-before': (data) => `id: 1\ndata: ${data}\n\n`,
  'retry-before': (data) => `retry: 1000\ndata: ${data}\n\n`,
  'id-after': (data) => `data: ${data}\nid: 1\n\n`,
  'two-lines': (data) => `data: ${data[0]}\ndata: ${data.slice(1)}\n\n`,
};
const server = http.createServer((request, response) => {
  response.writeHead(200, {'content-type': 'text/event-stream'});
  response.end(events.map(forms[request.url.split('/')[1]]).join(''));
});
server.listen(0, '127.0.0.1', () => fs.writeFileSync('address', `http://127.0.0.1:${server.address().port}`));
END
cat >client.mjs <<'END'
import {GoogleGenAI} from '@google/genai';
const [address, ...forms] = process.argv.slice(2);
for (const form of forms) {
  const client = new GoogleGenAI({apiKey: 'k', httpOptions: {baseUrl: address + '/' + form}});
  let text = '', reason = 'none', error = '';
  try {
    for await (const chunk of await client.models.generateContentStream({model: 'm', contents: 'hi'})) {
      text += chunk.text ?? '';
      reason = chunk.candidates?.[0]?.finishReason ?? reason;
    }
  } catch { error = ', error'; }
  console.log(`JavaScript, ${form}: "${text}", ${reason}${error}`);
}
END
cat >go.mod <<'END'
module finding

go 1.26

require google.golang.org/genai v1.77.0
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/genai"
)

func main() {
	for _, form := range os.Args[2:] {
		client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
			APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: os.Args[1] + "/" + form},
		})
		if err != nil {
			panic(err)
		}
		text, reason, failed := "", "none", ""
		for chunk, err := range client.Models.GenerateContentStream(context.Background(), "m", genai.Text("hi"), nil) {
			if err != nil {
				failed = ", error"
				break
			}
			text += chunk.Text()
			if chunk.Candidates[0].FinishReason != "" {
				reason = string(chunk.Candidates[0].FinishReason)
			}
		}
		fmt.Printf("Go, %s: %q, %s%s\n", form, text, reason, failed)
	}
}
END
GOFLAGS=-mod=mod go build -o client . 2>/dev/null

node server.mjs &
server=$!
while [ ! -s address ]; do sleep 0.1; done
forms=(data comment-alone id-before retry-before id-after two-lines)
seen=$(node client.mjs "$(cat address)" "${forms[@]}" && ./client "$(cat address)" "${forms[@]}")
printf '%s\n' "$seen"

expected='JavaScript, data: "hello", STOP
JavaScript, comment-alone: "hello", STOP
JavaScript, id-before: "", none
JavaScript, retry-before: "", none
JavaScript, id-after: "", none, error
JavaScript, two-lines: "", none, error
Go, data: "hello", STOP
Go, comment-alone: "", none, error
Go, id-before: "", none, error
Go, retry-before: "", none, error
Go, id-after: "", none, error
Go, two-lines: "", none, error'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
