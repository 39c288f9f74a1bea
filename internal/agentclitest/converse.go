package agentclitest

import (
	"encoding/json"
	"maps"
)

// reply is one message of the model: what it says, and the call that it makes of the shell tool.
type reply struct {
	text     string
	id, name string // of the call; empty: there is none
	args     string // JSON
}

// readArgs are the call's arguments, none where they are not JSON.
func (r reply) readArgs() object {
	args := object{}
	_ = json.Unmarshal([]byte(r.args), &args)
	return args
}

// readCommand is the command that the call runs.
func (r reply) readCommand() string { return field[string](r.readArgs(), "command") }

// speaker is a CLI for holdConversation: its wire, and what it prints. printResult returns what the
// model is told of a command; printFailure and printEnd end the process.
type speaker interface {
	askModel() (reply, *refusal)
	keepReply(r reply)
	keepResult(r reply, told string)

	printReply(r reply)
	printResult(r reply, did ran) (told string)
	printFailure(f *refusal)
	printEnd(text string)
}

// holdConversation asks the model, and runs what it calls, until it has an answer.
func holdConversation(s speaker, kept *session, ownGroup bool) {
	for {
		r, failed := s.askModel()
		if failed != nil {
			kept.save()
			s.printFailure(failed)
		}
		s.keepReply(r)
		s.printReply(r)
		if r.id == "" {
			kept.save()
			s.printEnd(r.text)
		}
		if field[string](r.readArgs(), "mode") == "async" {
			kept.background = startTool(r.readCommand())
			s.keepResult(r, s.printResult(r, ran{out: "<command started in background with shellId: 0>"}))
			continue
		}
		s.keepResult(r, s.printResult(r, runTool(r.readCommand(), ownGroup)))
		kept.save()
	}
}

// chat is the wire of those that ask for chat completions.
type chat struct {
	model, url, key string // the URL has the version
	accept          string // the header
	tool            string // as the CLI calls its shell
	required        list   // that tool's parameters
	optional        object // those that it has besides
	system          string
	session         session
	asked           int // requests of this run
}

func (c *chat) addPrompt(prompt string) {
	c.session.Messages = append(c.session.Messages, object{"role": "user", "content": prompt})
}

func (c *chat) askModel() (r reply, failed *refusal) {
	c.asked++
	properties := maps.Clone(c.optional)
	if properties == nil {
		properties = object{}
	}
	for _, name := range c.required {
		properties[name.(string)] = object{"type": "string"} //nolint:errcheck // all are
	}
	failed = ask(c.url+"/chat/completions", map[string]string{"Authorization": "Bearer " + c.key, "Accept": c.accept}, object{
		"model": c.model, "stream": true, "stream_options": object{"include_usage": true},
		"messages": append(list{object{"role": "system", "content": "Working directory: " + workFolder() + "\n" + c.system}}, c.session.Messages...),
		"tools": list{object{"type": "function", "function": object{"name": c.tool, "description": "Runs a command",
			"parameters": object{"type": "object", "properties": properties, "required": c.required}}}},
	}, func(e object) {
		for _, one := range field[list](e, "choices") {
			choice, _ := one.(object)
			delta := field[object](choice, "delta")
			r.text += field[string](delta, "content")
			for _, one := range field[list](delta, "tool_calls") {
				called, _ := one.(object)
				function := field[object](called, "function")
				r.id += field[string](called, "id")
				r.name += field[string](function, "name")
				r.args += field[string](function, "arguments")
			}
		}
	})
	return r, failed
}

func (c *chat) keepReply(r reply) {
	said := object{"role": "assistant", "content": r.text}
	if r.id != "" {
		said["tool_calls"] = list{object{"id": r.id, "type": "function", "function": object{"name": r.name, "arguments": r.args}}}
	}
	c.session.Messages = append(c.session.Messages, said)
}

func (c *chat) keepResult(r reply, told string) {
	c.session.Messages = append(c.session.Messages, object{"role": "tool", "tool_call_id": r.id, "content": told})
}
