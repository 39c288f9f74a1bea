// Package acp runs coding agents that speak the Agent Client Protocol (JSON-RPC 2.0, a message
// a line, over stdin and stdout; https://agentclientprotocol.com, version 1): a client of the
// few methods that a step needs, and the agent around it. It offers servers no files and no
// terminals of its own: they work in the workspace, in the sandbox. It reads all that a server
// prints as hostile, and never takes a server's word for what it cost: the gateway counts.
package acp
