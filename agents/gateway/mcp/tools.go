package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Tool is a tool as agents get it. Whatever else a server says of one, such as annotations
// that it is harmless, is left out, since nothing pins it.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
}

// listedTool is a tool in a server's list.
type listedTool struct {
	Tool
	Execution struct {
		TaskSupport string `json:"taskSupport"`
	} `json:"execution"`
}

// Bounds of a server's list.
const (
	maxPages      = 20
	maxTools      = 1000
	maxDefinition = 64 << 10 // bytes that can be pinned: they are shown whole, and fit a command
)

// listForAgent is the answer to an agent that asks for the tools: all on one page.
func (p *Proxy) listForAgent(ctx context.Context) (json.RawMessage, error) {
	tools, err := p.loadTools(ctx)
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"tools": append([]Tool{}, tools...)}), nil
}

// loadTools asks the server for its tools, once, and keeps those that agents get.
func (p *Proxy) loadTools(ctx context.Context) ([]Tool, error) {
	p.listing.Lock()
	defer p.listing.Unlock()
	if p.listed {
		return p.tools, nil
	}
	all, err := p.fetchTools(ctx)
	if err != nil { // as a text, so that the server is named, whatever its own error is
		return nil, errors.New("list its tools: " + err.Error())
	}
	p.mu.Lock()
	sessionless := p.session.version == stateless
	p.mu.Unlock()

	var kept []Tool
	for _, name := range p.o.Tools {
		i := slices.IndexFunc(all, func(t listedTool) bool { return t.Name == name })
		var why string
		switch {
		case i < 0:
			why = fmt.Sprintf("is allowed, and the server has none of that name; it has: %s", text.Cut(namesOf(all), 400))
		case all[i].Execution.TaskSupport == "required":
			why = "runs as a task alone (taskSupport: required), which uwf does not do; agents don't get it"
		case sessionless && bytes.Contains(encode(all[i].InputSchema), []byte(`"x-mcp-header":`)):
			why = "wants arguments in headers (x-mcp-header), which uwf does not send; agents don't get it"
		default:
			why = p.checkPin(all[i].Tool)
		}
		if why == "" {
			writeOutAny(all[i].InputSchema)
			kept = append(kept, all[i].Tool)
		} else {
			p.o.Tell(fmt.Sprintf("MCP server %s: the tool %s %s", p.o.Name, name, why))
		}
	}
	p.tools, p.listed = kept, true
	return p.tools, nil
}

// writeOutAny makes an object of each property's schema that is true, as MCP's Go SDK writes it for
// any value: with one of them clients of the TypeScript SDK 1.32 lose all tools.
func writeOutAny(schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		if property == true {
			properties[name] = map[string]any{}
		}
	}
}

// fetchTools reads all pages of the server's list.
func (p *Proxy) fetchTools(ctx context.Context) (all []listedTool, err error) {
	cursor := map[string]any{}
	for range maxPages {
		raw, err := p.callServer(ctx, "tools/list", cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []listedTool `json:"tools"`
			Next  string       `json:"nextCursor"`
		}
		if raw, err = p.cleanResult(raw); err != nil {
			return nil, err
		}
		if err := text.DecodeJSON(raw, &page); err != nil { // a number is pinned as it is written
			return nil, fmt.Errorf("its list of tools can't be read: %w", err)
		}
		for _, t := range page.Tools {
			delete(t.InputSchema, "$schema") // libraries change it by themselves, so it is not pinned
		}
		if all = append(all, page.Tools...); len(all) > maxTools {
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		}
		if page.Next == "" {
			return all, nil
		}
		cursor["cursor"] = page.Next
	}
	return nil, fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

// checkPin compares what a tool says to models with its pin, and says why agents don't get it;
// empty: they do.
func (p *Proxy) checkPin(t Tool) string {
	now := map[string]any{"description": t.Description, "inputSchema": t.InputSchema}
	written := escapeHidden(string(encode(now)))
	pin := p.o.Pins[t.Name]
	var pinned any
	why := "is not pinned, and agents don't get it"
	switch {
	case text.DecodeJSON([]byte(pin), &pinned) == nil && bytes.Equal(encode(pinned), encode(now)):
		return ""
	case len(written) > maxDefinition:
		return fmt.Sprintf("can't be pinned, and agents don't get it: its description and schema have %d bytes, and %d can be shown", len(written), maxDefinition)
	case pin != "":
		why = "is no longer what was pinned, and agents don't get it: " + strings.Join(differences("", pinned, now), "; ")
	}
	return why + "; to let agents have it as it is now: " + p.o.PinCommand(t.Name, written)
}

// differences lists where two values differ, each with its path, what was there and what is.
func differences(at string, before, after any) (out []string) {
	old, isOld := before.(map[string]any)
	fresh, isNew := after.(map[string]any)
	if !isOld || !isNew {
		was, is := escapeHidden(string(encode(before))), escapeHidden(string(encode(after)))
		if was != is {
			out = append(out, fmt.Sprintf("%s was %s and is %s", escapeHidden(at), was, is))
		}
		return out
	}
	names := maps.Clone(old)
	maps.Copy(names, fresh)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, differences(strings.TrimPrefix(at+"."+name, "."), old[name], fresh[name])...)
	}
	return out
}

// hidden are the characters that nobody sees.
var hidden = lazyregexp.New(`[^\pL\pM\pN\pP\pS ]|[\x{fe00}-\x{fe0f}\x{e0100}-\x{e01ef}]`)

// escapeHidden escapes them as JSON does, so that a person sees all that they pin.
func escapeHidden(s string) string {
	return hidden.ReplaceAllStringFunc(s, func(c string) (out string) {
		for _, unit := range utf16.Encode([]rune(c)) {
			out += fmt.Sprintf(`\u%04x`, unit)
		}
		return out
	})
}

func namesOf(tools []listedTool) string {
	return strings.Join(lists.Map(tools, func(t listedTool) string { return text.OneLine(t.Name) }), ", ")
}
