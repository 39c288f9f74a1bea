#!/usr/bin/env python3
"""A whole agent in Python: one conversation with a model, no tools.

It needs Python 3.9 and nothing else. README.md beside this file says what each
part of the protocol is for. Use it as

    uwf thread step THREAD-ID --agent examples/agents/agent.py

uwf calls it as: agent.py THREAD-ID ROLE, in the workspace.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

CORRECTIONS = 2


class Failed(Exception):
    """The step can't be done."""


def uwf(*args, text=""):
    """Runs the uwf that called us; another one may be on PATH, or none."""
    command = [os.environ.get("UWF_BIN", "uwf"), "agent", *args]
    return subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)


class Model:
    """The model behind the gateway, whose address and key are good for this run only.

    The gateway counts tokens, keeps budgets and repeats what fails for a moment.
    """

    def __init__(self, task):
        if not task.get("model") or "UWF_GATEWAY_URL" not in os.environ:
            raise Failed("no model is configured for this role; run: uwf setup")
        self.name = task["model"]["alias"]
        self.anthropic = task["model"].get("api") == "anthropic"
        self.turns = self.tokens_in = self.tokens_out = 0
        # The gateway is on this machine: no proxy of the environment is asked.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, system, messages):
        if self.anthropic:
            body = {"model": self.name, "max_tokens": 8192, "system": system, "messages": messages}
            reply = self.post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body, {
                "X-Api-Key": os.environ["ANTHROPIC_API_KEY"], "Anthropic-Version": "2023-06-01",
            })
            answer = "".join(part["text"] for part in reply["content"] if part["type"] == "text")
            used = reply.get("usage", {}).get("input_tokens", 0), reply.get("usage", {}).get("output_tokens", 0)
        else:
            body = {"model": self.name, "messages": [{"role": "system", "content": system}, *messages]}
            reply = self.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {
                "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
            })
            answer = reply["choices"][0]["message"].get("content") or ""
            usage = reply.get("usage") or {}
            used = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        self.turns += 1
        self.tokens_in += used[0]
        self.tokens_out += used[1]
        return answer

    def post(self, url, body, headers):
        request = urllib.request.Request(
            url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json", **headers})
        try:
            with self.opener.open(request, timeout=900) as response:
                return json.load(response)
        except urllib.error.HTTPError as e:
            raise Failed(f"HTTP {e.code}: {e.read(2000).decode(errors='replace')}") from e
        except (urllib.error.URLError, ValueError, OSError) as e:
            raise Failed(f"the gateway gave no answer: {e}") from e


class Conversation:
    """The messages so far, and the turns that are staged of them."""

    def __init__(self, task, model):
        self.task, self.model = task, model
        self.messages, self.turns = [], []
        self.system = (f'You do one step of a workflow, in the role "{task["role"]}". '
                       "Answer in the form that the task asks for.")

    def ask(self, text):
        self.messages.append({"role": "user", "content": text})
        answer = self.model.ask(self.system, self.messages)
        # An empty message is refused by many servers.
        self.messages.append({"role": "assistant", "content": answer or "(no answer)"})
        self.turns.append(self.stage(answer))
        return answer

    def stage(self, answer):
        """Stages the turn: what is staged is kept also when this process is killed."""
        node = {"type": "builtin-turn",
                "payload": {"role": "assistant", "content": answer, "toolCalls": None, "reasoning": None}}
        done = uwf("stage", text=json.dumps(node))
        if done.returncode != 0:
            raise Failed(done.stderr)
        return done.stdout.strip()

    def commit(self, answer, folder):
        """Commits an answer: (handle, None), or (None, complaint) where it does not fit."""
        detail = os.path.join(folder, "detail.json")
        with open(detail, "w", encoding="utf-8") as f:
            json.dump({"type": "builtin-detail", "payload": {
                "sessionId": f'{self.task["thread"]}-{self.task["step"]}', "model": self.model.name,
                "duration": 0, "turnCount": len(self.turns), "turns": self.turns,
            }}, f)
        usage = {"turns": self.model.turns, "inputTokens": self.model.tokens_in, "outputTokens": self.model.tokens_out}
        done = uwf("commit", "-", "--detail", detail, "--usage", json.dumps(usage), text=answer)
        sys.stderr.write(done.stderr)
        if done.returncode == 0:
            return done.stdout.strip(), None
        if done.returncode == 1:  # the complaint is written for the model
            return None, done.stderr
        raise Failed("the answer can't be committed")


def main():
    # uwf sends SIGTERM when the step is stopped, and SIGKILL a second later.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(os.path.join(os.environ["UWF_CONTEXT"], "context.json"), encoding="utf-8") as f:
        task = json.load(f)
    if [task["thread"], task["role"]] != sys.argv[-2:]:
        raise Failed("called for another thread or role than the context is of")
    with tempfile.TemporaryDirectory() as folder:
        talk = Conversation(task, Model(task))
        text = task["prompt"]
        for _ in range(1 + CORRECTIONS):
            handle, complaint = talk.commit(talk.ask(text), folder)
            if handle:
                print(handle)  # the last line on stdout, and best the only one
                return
            text = complaint
    raise Failed("the model's answers could not be used")


if __name__ == "__main__":
    try:
        main()
    except KeyError as e:
        sys.exit(f"agent.py: {e} is missing; uwf sets it when it starts an agent")
    except Failed as e:
        sys.exit(f"agent.py: {e}")
