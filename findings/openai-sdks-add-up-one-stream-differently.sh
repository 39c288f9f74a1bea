#!/usr/bin/env bash
# OpenAI's SDKs for Node and Go make different tool names and token counts of the same stream.
#
# Versions: openai 7.59.0 (npm), github.com/openai/openai-go/v3 v3.99.0 (Go).
# Seen on 2026-11-29, with `chat.completions.stream` and `ChatCompletionAccumulator`, and no error in either:
#   a call whose name `find` is in each of three pieces     Node: find   Go: findfindfind
#   a call whose name comes in the pieces `fi` and `nd`     Node: nd     Go: find
#   a running total of 1, 2 and 3 output tokens per piece   Node: 3      Go: 6
# Node replaces the name and the usage, Go appends the one and adds up the other. Compatible servers send
#   such streams: some models' calls repeat their name, and vLLM's `continuous_usage_stats` gives totals.
# So a gateway must send a name once and whole, and usage once, in a last piece.
# Needs: bash, node, npm, go 1.26, and access to the npm registry and a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund openai@7.59.0
cat >server.mjs <<'END'
import http from 'node:http';
import fs from 'node:fs';

const piece = (delta, finish_reason = null, usage = undefined) => ({
  id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{index: 0, delta, finish_reason}], usage});
const call = (name, text) => piece({role: 'assistant', tool_calls: [
  {index: 0, id: 'call', type: 'function', function: {name, arguments: text}}]});
const total = (n) => ({prompt_tokens: 10, completion_tokens: n, total_tokens: 10 + n});
const streams = {
  'repeated-name': [call('find', ''), call('find', '{"a"'), call('find', ':1}'), piece({}, 'tool_calls')],
  'split-name': [call('fi', ''), call('nd', '{"a":1}'), piece({}, 'tool_calls')],
  'running-total': [piece({role: 'assistant', content: 'a'}, null, total(1)),
    piece({content: 'b'}, null, total(2)), piece({content: 'c'}, 'stop', total(3))],
};
const server = http.createServer((request, response) => {
  response.writeHead(200, {'content-type': 'text/event-stream'});
  const pieces = streams[request.url.split('/')[1]];
  response.end(pieces.map((piece) => `data: ${JSON.stringify(piece)}\n\n`).join('') + 'data: [DONE]\n\n');
});
server.listen(0, '127.0.0.1', () => fs.writeFileSync('address', `http://127.0.0.1:${server.address().port}`));
END
cat >client.mjs <<'END'
import OpenAI from 'openai';
const [address, ...streams] = process.argv.slice(2);
for (const stream of streams) {
  const client = new OpenAI({apiKey: 'k', baseURL: `${address}/${stream}`, maxRetries: 0});
  const request = {model: 'm', messages: [{role: 'user', content: 'hi'}]};
  const completion = await client.chat.completions.stream(request).finalChatCompletion();
  const call = completion.choices[0].message.tool_calls?.[0].function;
  console.log(`Node, ${stream}: ${call ? `${call.name} ${call.arguments}` : `${completion.usage.completion_tokens} tokens`}`);
}
END
cat >go.mod <<'END'
module finding

go 1.26

require github.com/openai/openai-go/v3 v3.99.0
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	for _, name := range os.Args[2:] {
		client := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(os.Args[1]+"/"+name+"/"))
		stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
			Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		})
		accumulator := openai.ChatCompletionAccumulator{}
		for stream.Next() {
			if !accumulator.AddChunk(stream.Current()) {
				log.Fatal("AddChunk refuses a piece")
			}
		}
		if err := stream.Err(); err != nil {
			log.Fatal(err)
		}
		if calls := accumulator.Choices[0].Message.ToolCalls; len(calls) > 0 {
			fmt.Printf("Go, %s: %s %s\n", name, calls[0].Function.Name, calls[0].Function.Arguments)
		} else {
			fmt.Printf("Go, %s: %d tokens\n", name, accumulator.Usage.CompletionTokens)
		}
	}
}
END
GOFLAGS=-mod=mod go build -o client . 2>/dev/null

node server.mjs &
server=$!
while [ ! -s address ]; do sleep 0.1; done
streams=(repeated-name split-name running-total)
seen=$(node client.mjs "$(cat address)" "${streams[@]}" && ./client "$(cat address)" "${streams[@]}")
printf '%s\n' "$seen"

expected='Node, repeated-name: find {"a":1}
Node, split-name: nd {"a":1}
Node, running-total: 3 tokens
Go, repeated-name: findfindfind {"a":1}
Go, split-name: find {"a":1}
Go, running-total: 6 tokens'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
