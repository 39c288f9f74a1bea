package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// Sum is what a tool is pinned by: sha256: and the SHA-256, in hexadecimal digits, of its JSON
// as it is written here: keys in order, no white space.
func (t Tool) Sum() (string, error) {
	b, err := text.EncodeJSON(t)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b)), nil
}

// Bounds of a server's list.
const (
	maxPages = 20
	maxTools = 1000
	maxShown = 1500 // bytes of a description in a message
)

// listForAgent is the answer to an agent that asks for the tools: all on one page.
func (p *Proxy) listForAgent(ctx context.Context) (json.RawMessage, error) {
	tools, err := p.loadTools(ctx)
	if err != nil {
		return nil, err
	}
	return text.EncodeJSON(map[string]any{"tools": append([]Tool{}, tools...)})
}

// loadTools asks the server for its tools, once, and keeps those that agents get.
func (p *Proxy) loadTools(ctx context.Context) ([]Tool, error) {
	p.listing.Lock()
	defer p.listing.Unlock()
	if p.listed {
		return p.tools, nil
	}
	all, err := p.fetchTools(ctx)
	if err != nil {
		return nil, err
	}
	var kept []Tool
	for _, name := range p.o.Tools {
		i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
		if i < 0 {
			p.tellOf(name, fmt.Sprintf("is allowed, and the server has none of that name; it has: %s", text.Cut(namesOf(all), 400)))
			continue
		}
		ok, err := p.checkPin(all[i])
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, all[i])
		}
	}
	p.tools, p.listed = kept, true
	return p.tools, nil
}

// fetchTools reads all pages of the server's list.
func (p *Proxy) fetchTools(ctx context.Context) (all []Tool, err error) {
	cursor := map[string]any{}
	for range maxPages {
		raw, err := p.callServer(ctx, "tools/list", cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []Tool `json:"tools"`
			Next  string `json:"nextCursor"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // a number is pinned as it is written
		if err := d.Decode(&page); err != nil {
			return nil, fmt.Errorf("its list of tools can't be read: %w", err)
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

// checkPin compares a tool with its pin, and tells where they differ.
func (p *Proxy) checkPin(t Tool) (ok bool, err error) {
	sum, err := t.Sum()
	pin := p.o.Pins[t.Name]
	if err != nil || pin == sum {
		return err == nil, err
	}
	why := "is no longer what was pinned, and agents don't get it"
	if pin == "" {
		why = "is not pinned, and agents don't get it"
	}
	command := ""
	if p.o.PinCommand != nil {
		command = p.o.PinCommand(t.Name, sum)
	}
	p.tellOf(t.Name, fmt.Sprintf("%s; it says now: %s; arguments: %s; to let agents have it as it is now: %s",
		why, text.Cut(text.Line(t.Description), maxShown), text.Cut(describeSchema(t.InputSchema), maxShown), cmp.Or(command, "pin "+sum)))
	return false, nil
}

func describeSchema(schema map[string]any) string {
	b, err := text.EncodeJSON(schema)
	if err != nil { // it was read from JSON
		return ""
	}
	return text.Line(string(b))
}

func (p *Proxy) tellOf(tool, what string) {
	if p.o.Tell != nil {
		p.o.Tell(p.secrets.Replace(fmt.Sprintf("MCP server %s: the tool %s %s", p.o.Name, tool, what)))
	}
}

func namesOf(tools []Tool) string {
	return strings.Join(lists.Map(tools, func(t Tool) string { return text.OneLine(t.Name) }), ", ")
}
