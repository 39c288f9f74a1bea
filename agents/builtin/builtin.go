// Package builtin is the agent that needs no other program: a chat with tools
// through the gateway, by the wire that suits the model. It works on the
// workspace through package tools, keeps within the model's window and output
// limit, and records every turn as it comes. It never holds a provider's key and
// never retries a model call: the gateway does both.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/fetch"
	"github.com/united-workforce/uwf/agents/gateway/mcp"
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
)

// Name is the agent's name.
const Name = "builtin"

const (
	// MaxTurns is how many answers of the model one run may take.
	MaxTurns = 30
	// warnAt is the number of turns left at which the model is told so.
	warnAt = 3
	// correctionTurns are there for each correction, however many were used before.
	correctionTurns = 3
	// maxCalls is how many tool calls of one answer are done.
	maxCalls = 32
	// maxAskedAgain is how often in a row the model is asked again after an answer that
	// can't be used: who says nothing three times says nothing the thirtieth time.
	maxAskedAgain = 2
)

// The variables that name the model, as OpenAI's own clients know them.
const (
	EnvBaseURL = "OPENAI_BASE_URL"
	EnvKey     = "OPENAI_API_KEY"
)

// ErrTurns: the model kept calling tools until its turns were used up.
var ErrTurns = errors.New("the model used all its turns without a final answer")

// ErrNoAnswer: the model's answers were empty or cut off, again and again.
var ErrNoAnswer = errors.New("no usable answer")

// Agent is one conversation. It implements agents.Adapter; use a new one for each
// run.
type Agent struct {
	// Transport carries the requests. Nil: http.DefaultTransport.
	Transport http.RoundTripper

	chat     *chat
	set      *tools.Set
	history  []openai.ChatCompletionMessage
	turns    []node.Hash
	usage    record.Usage
	began    time.Time
	maxTurns int
}

var _ agents.Adapter = (*Agent)(nil)

// Run does the task. It implements agents.Adapter.
func (a *Agent) Run(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	if err := a.openSession(ctx, s); err != nil {
		return agents.Answer{}, err
	}
	if err := a.beginConversation(s); err != nil {
		return agents.Answer{}, err
	}
	return a.runConversation(ctx, s)
}

// Continue goes on after an answer that could not be taken. It implements
// agents.Adapter.
func (a *Agent) Continue(ctx context.Context, s *agents.Session, complaint string) (agents.Answer, error) {
	if a.chat == nil {
		return agents.Answer{}, errors.New("builtin: there is no conversation to continue")
	}
	a.maxTurns = max(a.maxTurns, a.usage.Turns+correctionTurns)
	a.appendMessage(openai.ChatMessageRoleUser, complaint)
	return a.runConversation(ctx, s)
}

// Close releases the workspace.
func (a *Agent) Close() error {
	if a.set == nil {
		return nil
	}
	return a.set.Close()
}

func (a *Agent) openSession(ctx context.Context, s *agents.Session) error {
	set, err := tools.Open(tools.Options{
		Dir: s.Workspace, AllowShell: s.Getenv(agents.EnvAllowShell) == "1",
		Environ: append(agents.CleanEnviron(s.Environ), "PWD="+s.Workspace),
		Explain: func(output string) string { return sandbox.ExplainOwnDenial(s.Environ, output) },
		Gateway: tools.Gateway{URL: s.Getenv(gateway.EnvURL), Key: s.Getenv(gateway.EnvKey), Transport: a.Transport, Hosts: s.Getenv(fetch.EnvHosts)},
		Mark:    s.Getenv(proc.MarkName), MaxResult: resultLimit(s.Task.Model),
	})
	if err != nil {
		return err
	}
	if err := set.AddServers(ctx, s.Getenv(mcp.EnvServers)); err != nil {
		return errors.Join(err, set.Close())
	}
	c, err := newChat(s, a.Transport, set.Definitions())
	if err != nil {
		return errors.Join(err, set.Close())
	}
	a.chat, a.set, a.began, a.maxTurns = c, set, s.Now(), MaxTurns
	return nil
}

// systemPrompt says what the tools are for. It holds nothing that differs between roles, so that
// each reads what the provider has kept of the others, nor between machines, so that a recorded
// run can be replayed anywhere.
func systemPrompt(set *tools.Set) string {
	return fmt.Sprintf(`You do one step of a workflow, in the role that your task names. The files you work on are in the workspace, which is the root of all paths; reach them with your tools: %s.
Do your role's work first, with the tools that it needs. What you only describe has not been done.
Your final answer is a message without tool calls, in the form that the task asks for. You have %d turns in all.`,
		strings.Join(set.Names(), ", "), MaxTurns)
}

// appendMessage appends a message that is not the model's.
func (a *Agent) appendMessage(role, text string) {
	a.history = append(a.history, openai.ChatCompletionMessage{Role: role, Content: text})
}

// runConversation goes on until the model gives a final answer. What was said is staged
// also when it fails.
func (a *Agent) runConversation(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	text, err := a.runTurns(ctx, s)
	detail, derr := a.stageDetail(s)
	if err = errors.Join(err, derr); err != nil {
		return agents.Answer{}, err
	}
	return agents.Answer{Text: text, Detail: detail, Usage: a.usage}, nil
}

func (a *Agent) runTurns(ctx context.Context, s *agents.Session) (string, error) {
	useless := 0 // answers in a row that can't be used
	for {
		left := a.maxTurns - a.usage.Turns
		if left <= 0 {
			return "", fmt.Errorf("%w (%d); give the role less to do, or a model that works in larger steps", ErrTurns, a.usage.Turns)
		}
		a.warnTurns(left)
		choice, err := a.askModel(ctx, left == 1)
		if err != nil {
			return "", fmt.Errorf("turn %d: %w", a.usage.Turns+1, err)
		}
		msg := choice.Message
		if err := a.recordTurn(s, assistantTurn(msg)); err != nil {
			return "", err
		}
		flaw := findFlaw(choice)
		msg.ReasoningContent = "" // providers refuse to get it back
		if flaw == nil || !flaw.empty {
			a.history = append(a.history, msg) // many servers refuse an empty message
		}
		switch {
		case flaw != nil:
			useless++
			if err := a.askAgain(flaw, useless, choice.FinishReason); err != nil {
				return "", err
			}
		case len(msg.ToolCalls) > 0:
			useless = 0
			if err := a.callTools(ctx, s, choice); err != nil {
				return "", err
			}
		default:
			return msg.Content, nil
		}
	}
}

// warnTurns tells the model that its turns run out.
func (a *Agent) warnTurns(left int) {
	switch {
	case left == 1:
		a.appendMessage(openai.ChatMessageRoleUser, "This is your last turn: no more tools. Give your final answer now.")
	case left == warnAt && a.usage.Turns > 0:
		a.appendMessage(openai.ChatMessageRoleUser, fmt.Sprintf("You have %d turns left. Finish the work and give your final answer.", left))
	}
}

// askModel makes one model call and counts it.
func (a *Agent) askModel(ctx context.Context, last bool) (openai.ChatCompletionChoice, error) {
	choice, used, err := a.chat.nextMessage(ctx, a.history, last)
	a.usage.InputTokens += int64(used.PromptTokens)
	a.usage.OutputTokens += int64(used.CompletionTokens)
	if err == nil {
		a.usage.Turns++
	}
	return choice, err
}

// callTools does the calls of one answer, in their order, and gives a result to
// every one of them, as the protocol demands.
func (a *Agent) callTools(ctx context.Context, s *agents.Session, choice openai.ChatCompletionChoice) error {
	calls := a.history[len(a.history)-1].ToolCalls
	for i := range calls {
		if calls[i].ID == "" { // some servers leave it out
			calls[i].ID = fmt.Sprintf("call_%d_%d", a.usage.Turns, i)
		}
		calls[i].Type = openai.ToolTypeFunction
		calls[i].Index = nil
		f := calls[i].Function
		result, err := a.callTool(ctx, s, choice.FinishReason, i, f)
		if err != nil {
			return err
		}
		a.history = append(a.history, openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleTool, Content: result, ToolCallID: calls[i].ID, Name: f.Name,
		})
		if err := a.recordTurn(s, map[string]any{"role": "tool", "content": result, "toolCalls": nil, "reasoning": nil}); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) callTool(ctx context.Context, s *agents.Session, why openai.FinishReason, i int, f openai.FunctionCall) (string, error) {
	if i >= maxCalls {
		return fmt.Sprintf("error: not done; at most %d calls in one answer", maxCalls), nil
	}
	_, _ = fmt.Fprintf(s.Stderr, "%s turn %d: %s\n", Name, a.usage.Turns, describeCall(f))
	result, err := a.set.Call(ctx, f.Name, f.Arguments)
	var wrong *tools.CallError
	switch {
	case errors.As(err, &wrong):
		if why == openai.FinishReasonLength {
			return "error: the call was cut off at the output limit; make it smaller. " + wrong.Msg, nil
		}
		return "error: " + wrong.Msg, nil
	case err != nil:
		return "", fmt.Errorf("tool %s: %w", f.Name, err)
	case result == "":
		return "[no output]", nil // an empty message is refused by many servers
	}
	return result, nil
}

// describeCall is a call in one line for people; quoting keeps control characters out.
func describeCall(f openai.FunctionCall) string {
	args := f.Arguments
	if len(args) > 120 {
		args = args[:120] + "…"
	}
	q := fmt.Sprintf("%q", args)
	return fmt.Sprintf("%q", f.Name)[1:len(fmt.Sprintf("%q", f.Name))-1] + " " + strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// recordTurn stages one turn.
func (a *Agent) recordTurn(s *agents.Session, turn map[string]any) error {
	h, err := s.Stage.Put(record.BuiltinTurnSchema, turn)
	if err != nil {
		return err
	}
	a.turns = append(a.turns, h)
	return nil
}

// maxRecorded bounds the arguments of one call in the record, in bytes: they are
// in the workspace, and a node has room for a megabyte only.
const maxRecorded = 128 << 10

func assistantTurn(m openai.ChatCompletionMessage) map[string]any {
	turn := map[string]any{"role": "assistant", "content": m.Content, "toolCalls": nil, "reasoning": nil}
	if m.ReasoningContent != "" {
		turn["reasoning"] = clipText(m.ReasoningContent)
	}
	var calls []any
	for i, c := range m.ToolCalls {
		if i == maxCalls {
			break
		}
		calls = append(calls, map[string]any{"name": c.Function.Name, "args": clipText(c.Function.Arguments)})
	}
	if len(calls) > 0 {
		turn["toolCalls"] = calls
	}
	return turn
}

func clipText(text string) string {
	if len(text) <= maxRecorded {
		return text
	}
	return fmt.Sprintf("%s… [%d bytes in all]", strings.ToValidUTF8(text[:maxRecorded], ""), len(text))
}

// stageDetail stages the node that lists the turns so far.
func (a *Agent) stageDetail(s *agents.Session) (node.Hash, error) {
	return s.Stage.Put(record.BuiltinDetailSchema, map[string]any{
		"sessionId": fmt.Sprintf("%s-%d", s.Task.Thread, s.Task.Step),
		"model":     a.chat.model.Name,
		"duration":  max(s.Now().Sub(a.began).Milliseconds(), 0),
		"turnCount": len(a.turns),
		"turns":     lists.Map(a.turns, func(h node.Hash) any { return string(h) }),
	})
}
