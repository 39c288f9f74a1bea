#!/bin/sh
# A whole agent in shell: one conversation with a model, no tools. It needs curl,
# and jq if the machine has it. README.md beside this file says what each part of
# the protocol is for. Use it as
#
#   uwf thread step THREAD-ID --agent examples/agents/agent.sh
#
# uwf calls it as: agent.sh THREAD-ID ROLE, in the workspace.
set -eu

# The uwf that called us. Another one may be on PATH, or none.
uwf() { command "${UWF_BIN:-uwf}" "$@"; }
# The same language where jq is not installed.
command -v jq >/dev/null || jq() { uwf agent jq "$@"; }

fail() {
  echo "agent.sh: $*" >&2
  exit 1
}

[ -n "${OPENAI_BASE_URL:-}" ] || fail "no model is configured for this role; run: uwf setup"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# uwf sends SIGTERM when the step is stopped, and SIGKILL a second later. What was
# staged until then is kept.
trap 'exit 143' TERM INT

turns='[]'
tokens_in=0
tokens_out=0
count=0

# say ROLE FILE adds a message to the conversation.
say() {
  jq -c --arg role "$1" --rawfile content "$2" '. + [{role: $role, content: $content}]' \
    "$tmp/messages.json" >"$tmp/messages.new"
  mv "$tmp/messages.new" "$tmp/messages.json"
}

# ask gives the conversation to the model; its answer is in answer.md. The address
# and the key are the gateway's, and good for this run only. The gateway repeats
# what fails for a moment, so that nobody needs to do so here.
ask() {
  jq -c --arg model "$OPENAI_MODEL" '{model: $model, messages: .}' "$tmp/messages.json" >"$tmp/request.json"
  # By a configuration on stdin, so that the key is not among the arguments.
  status=$(printf 'header = "Authorization: Bearer %s"\n' "$OPENAI_API_KEY" |
    curl --config - --silent --show-error --noproxy '*' --max-time 900 \
      --header 'Content-Type: application/json' --data-binary "@$tmp/request.json" \
      --output "$tmp/response.json" --write-out '%{http_code}' "$OPENAI_BASE_URL/chat/completions") ||
    fail "the gateway gave no answer"
  [ "$status" = 200 ] || fail "HTTP $status: $(jq -r '.error.message // .' "$tmp/response.json")"
  jq -j '.choices[0].message.content // ""' "$tmp/response.json" >"$tmp/answer.md"
  tokens_in=$((tokens_in + $(jq '.usage.prompt_tokens // 0' "$tmp/response.json")))
  tokens_out=$((tokens_out + $(jq '.usage.completion_tokens // 0' "$tmp/response.json")))
  count=$((count + 1))
  keep
  say assistant "$tmp/answer.md"
}

# keep stages the model's turn, so that the step shows how its answer came about.
keep() {
  turn=$(jq -n -c --rawfile content "$tmp/answer.md" \
    '{type: "builtin-turn", payload: {role: "assistant", content: $content, toolCalls: null, reasoning: null}}' |
    uwf agent stage)
  turns=$(printf '%s' "$turns" | jq -c --arg turn "$turn" '. + [$turn]')
}

# commit checks the answer and stages the step. Its stdout is the handle.
commit() {
  printf '%s' "$turns" | jq -c --arg session "$UWF_THREAD-$(uwf agent context --field step)" --arg model "$OPENAI_MODEL" \
    '{type: "builtin-detail", payload: {sessionId: $session, model: $model, duration: 0, turnCount: length, turns: .}}' \
    >"$tmp/detail.json"
  uwf agent commit "$tmp/answer.md" --detail "$tmp/detail.json" \
    --usage "{\"turns\": $count, \"inputTokens\": $tokens_in, \"outputTokens\": $tokens_out}" \
    >"$tmp/handle" 2>"$tmp/complaint"
}

echo '[]' >"$tmp/messages.json"
printf 'You do one step of a workflow, in the role "%s". Answer in the form that the task asks for.' "$2" >"$tmp/system.md"
say system "$tmp/system.md"
uwf agent context --prompt >"$tmp/prompt.md"
say user "$tmp/prompt.md"

# The first answer and two corrections.
for try in 1 2 3; do
  echo "agent.sh: asking $OPENAI_MODEL ($try)" >&2
  ask
  code=0
  commit || code=$?
  cat "$tmp/complaint" >&2
  case $code in
  0) # The handle is the last line on stdout, and best the only one.
    cat "$tmp/handle"
    exit 0
    ;;
  1) say user "$tmp/complaint" ;; # the complaint is written for the model
  *) exit 1 ;;                    # no other answer would help
  esac
done
fail "the model's answers could not be used"
