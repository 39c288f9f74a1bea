#!/usr/bin/env bash
# MCP's Go SDK infers schemas that the JSON of the same Go values breaks, and refuses the tool's answer.
#
# Versions: github.com/modelcontextprotocol/go-sdk v1.8.0 (Go), with its google/jsonschema-go v0.4.3.
# Seen on 2026-11-29. `mcp.AddTool` makes a tool's output schema of its Go type, not of how that type is
#   written as JSON. The call runs the tool, and then fails with a protocol error, "validating tool output":
#   []byte, json.RawMessage   schema: a list of numbers   written: base64, or any JSON
#   json.Number               schema: a string            written: a number
#   netip.Addr                schema: an object           written: a string
#   `json:",string"`          schema: a number            written: a string
#   a type with MarshalText   schema: its kind            written: a string
#   a nil map                 schema: an object           written: null (a nil slice is allowed for)
#   a result with IsError and a zero output that has a map: the tool's own error text is lost.
# The same types as input refuse what a client would send. AddTool accepts all of them without a word.
# So give such tools a schema by hand, or `any` as output, and call them once in a test.
# Needs: bash, go 1.26, and access to a Go module proxy.
set -euo pipefail

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

cat >go.mod <<'END'
module finding

go 1.26

require github.com/modelcontextprotocol/go-sdk v1.8.0
END
cat >main.go <<'END'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type output[T any] struct {
	V T `json:"v"`
}

type quoted struct {
	V int `json:"v,string"`
}

type color int

func (color) MarshalText() ([]byte, error) { return []byte("red"), nil }

// try calls a tool that gives out, with an error result if text is not empty.
func try[T any](name string, out T, text string) {
	ctx, ran := context.Background(), false
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "tool"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, T, error) {
			ran = true
			if text == "" {
				return nil, out, nil
			}
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, out, nil
		})

	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, here, nil); err != nil {
		log.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, there, nil)
	if err != nil {
		log.Fatal(err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "tool"})
	if err != nil {
		_, reason, _ := strings.Cut(err.Error(), "/properties/v: type: ")
		fmt.Printf("%s: ran %t, refused: %s\n", name, ran, reason)
		return
	}
	written, err := json.Marshal(result.StructuredContent)
	fmt.Printf("%s: ran %t, taken: %s %v\n", name, ran, written, err)
}

func main() {
	try("slice", output[[]string]{}, "")
	try("map", output[map[string]string]{}, "")
	try("bytes", output[[]byte]{[]byte("hi")}, "")
	try("raw", output[json.RawMessage]{json.RawMessage(`"hi"`)}, "")
	try("number", output[json.Number]{"5"}, "")
	try("address", output[netip.Addr]{netip.MustParseAddr("192.0.2.1")}, "")
	try("quoted", quoted{5}, "")
	try("color", output[color]{1}, "")
	try("error", output[map[string]string]{}, "the file is missing")
}
END
GOFLAGS=-mod=mod go build -o finding . 2>/dev/null

seen=$(./finding)
printf '%s\n' "$seen"

expected='slice: ran true, taken: {"v":null} <nil>
map: ran true, refused: <invalid reflect.Value> has type "null", want "object"
bytes: ran true, refused: aGk= has type "string", want one of "null, array"
raw: ran true, refused: hi has type "string", want one of "null, array"
number: ran true, refused: 5 has type "integer", want "string"
address: ran true, refused: 192.0.2.1 has type "string", want "object"
quoted: ran true, refused: 5 has type "string", want "integer"
color: ran true, refused: red has type "string", want "integer"
error: ran true, refused: <invalid reflect.Value> has type "null", want "object"'
if [ "$seen" != "$expected" ]; then
	echo "this differs from what was seen:"
	diff <(printf '%s\n' "$expected") <(printf '%s\n' "$seen")
	exit 1
fi
