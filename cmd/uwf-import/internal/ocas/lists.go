package ocas

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// Names of the variables that newer stores keep their lists in.
const (
	threadVar   = "@uwf/thread/"
	historyVar  = "@uwf/history/"
	registryVar = "@uwf/registry/"
)

// statuses translates those of the TypeScript uwf.
var statuses = map[string]string{
	"": Active, "idle": Active, "active": Active, "running": Active, "suspended": Suspended,
	"completed": Ended, "ended": Ended, "end": Ended, "cancelled": Cancelled,
}

// addThread takes a thread in. What a later list says counts.
func (s *Source) addThread(id, head string, fields map[string]string) error {
	t := Thread{ID: statefile.ThreadID(id), Head: node.Hash(head), Role: fields["suspendedRole"], Reason: fields["suspendMessage"]}
	if !t.ID.Valid() || !t.Head.Valid() {
		return fmt.Errorf("thread %.40q at %.40q: no thread id, or no hash", id, head)
	}
	if t.Status = statuses[fields["status"]]; t.Status == "" {
		return fmt.Errorf("thread %s: unknown status %.40q", id, fields["status"])
	}
	if t.Status == Active && t.Role != "" {
		t.Status = Suspended
	}
	if at := fields["completedAt"]; at != "" {
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil || ms < 0 || ms > 1<<53 {
			return fmt.Errorf("thread %s: completedAt: %.40q is no time in milliseconds", id, at)
		}
		t.CompletedAt = ms
	}
	s.threads[t.ID] = t
	return nil
}

// readThreads reads threads.yaml: id: head, or id: {head, status, suspendedRole,
// suspendMessage, completedAt}.
func (s *Source) readThreads(b []byte) error {
	return eachPair(b, func(key string, v *yaml.Node) error {
		if v.Kind == yaml.ScalarNode {
			return s.addThread(key, v.Value, nil)
		}
		fields := map[string]string{}
		if v.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: neither a hash nor a mapping", v.Line)
		}
		for i := 0; i+1 < len(v.Content); i += 2 {
			if val := v.Content[i+1]; val.Kind == yaml.ScalarNode && val.Tag != "!!null" {
				fields[v.Content[i].Value] = val.Value
			}
		}
		return s.addThread(key, fields["head"], fields)
	})
}

// readWorkflows reads workflows.yaml: name: hash, or name: {hash, …}.
func (s *Source) readWorkflows(b []byte) error {
	return eachPair(b, func(key string, v *yaml.Node) error {
		text := v.Value
		for i := 0; v.Kind == yaml.MappingNode && i+1 < len(v.Content); i += 2 {
			if v.Content[i].Value == "hash" {
				text = v.Content[i+1].Value
			}
		}
		return s.addWorkflow(key, text)
	})
}

func (s *Source) addWorkflow(name, text string) error {
	h := node.Hash(text)
	if !h.Valid() || name == "" || len(name) > 200 {
		return fmt.Errorf("workflow %.40q: %.40q is no hash", name, text)
	}
	s.flows[name] = h
	return nil
}

// eachPair reads a YAML mapping.
func eachPair(b []byte, visit func(key string, v *yaml.Node) error) error {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(b)).Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: no mapping", root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := visit(root.Content[i].Value, root.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// readHistory reads history.jsonl: {thread, workflow, head, completedAt, reason}.
func (s *Source) readHistory(b []byte) error {
	return eachLine(b, func(m map[string]any) error {
		id, _ := m["thread"].(string)
		head, _ := m["head"].(string)
		reason, _ := m["reason"].(string)
		if reason == "" {
			reason = "completed"
		}
		fields := map[string]string{"status": reason}
		if at, ok := m["completedAt"].(int64); ok {
			fields["completedAt"] = strconv.FormatInt(at, 10)
		}
		return s.addThread(id, head, fields)
	})
}

// readVars reads the variables of a bundle or a store, {name, value, tags, …}, the
// later line over the earlier one; {__op: "remove"} takes one back.
func (s *Source) readVars(b []byte) error {
	return eachLine(b, func(m map[string]any) error {
		name, _ := m["name"].(string)
		value, _ := m["value"].(string)
		if op, _ := m["__op"].(string); op == "remove" {
			delete(s.flows, strings.TrimPrefix(name, registryVar))
			delete(s.threads, statefile.ThreadID(strings.TrimPrefix(name, threadVar)))
			return nil
		}
		if flow, ok := strings.CutPrefix(name, registryVar); ok {
			return s.addWorkflow(flow, value)
		}
		id, isThread := strings.CutPrefix(name, threadVar)
		fields := map[string]string{}
		if !isThread {
			if id, isThread = strings.CutPrefix(name, historyVar); !isThread {
				return nil
			}
			fields["status"] = "completed"
		}
		tags, _ := m["tags"].(map[string]any)
		for k, v := range tags {
			if text, ok := v.(string); ok {
				fields[k] = text
			}
		}
		return s.addThread(id, value, fields)
	})
}

// eachLine reads JSON lines.
func eachLine(b []byte, visit func(map[string]any) error) error {
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, err := node.ParseJSON(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("line %d: no object", n)
		}
		if err := visit(m); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}
