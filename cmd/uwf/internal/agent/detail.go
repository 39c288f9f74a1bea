package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/gitcas/node"
)

// maxDetail bounds the file of --detail, in bytes.
const maxDetail = 64 << 20

// stageDetail stages the nodes of a file and returns the last one's hash.
func stageDetail(stage *agents.Stage, file string) (node.Hash, error) {
	if file == "" {
		return "", nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("reading the detail: %w", err)
	}
	if info.Size() > maxDetail {
		return "", fmt.Errorf("reading the detail: %s is larger than %d bytes", file, maxDetail)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the detail: %w", err)
	}
	v, err := node.ParseJSON(b)
	if err != nil {
		return "", fmt.Errorf("reading the detail %s: %w", file, err)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var staged []node.Hash
	for i, item := range list {
		h, err := stageNode(stage, item, staged)
		if err != nil {
			return "", fmt.Errorf("detail %s, node %d: %w", file, i+1, err)
		}
		staged = append(staged, h)
	}
	if len(staged) == 0 {
		return "", fmt.Errorf("detail %s: it holds no node", file)
	}
	return staged[len(staged)-1], nil
}

func stageNode(stage *agents.Stage, v any, before []node.Hash) (node.Hash, error) {
	m, ok := v.(map[string]any)
	typ, isText := m["type"].(string)
	payload, has := m["payload"]
	if !ok || !isText || !has {
		return "", errors.New(`a node is {"type": HASH, "payload": …}`)
	}
	h, err := node.ParseHash(typ)
	if err != nil {
		return "", err
	}
	if payload, err = withHashes(payload, before); err != nil {
		return "", err
	}
	return stage.Put(h, payload)
}

// nodeKey is the only key of an object that stands for another node's hash: a
// script can't compute hashes.
const nodeKey = "$node"

// withHashes puts hashes in the place of {"$node": N}.
func withHashes(v any, hashes []node.Hash) (any, error) {
	switch x := v.(type) {
	case []any:
		for i := range x {
			var err error
			if x[i], err = withHashes(x[i], hashes); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if n, ok := x[nodeKey]; ok && len(x) == 1 {
			at, isNumber := n.(int64)
			if !isNumber || at < 1 || at > int64(len(hashes)) {
				return nil, fmt.Errorf(`{"$node": %v}: a node refers to one of the %d before it, from 1`, n, len(hashes))
			}
			return string(hashes[at-1]), nil
		}
		for k := range x {
			var err error
			if x[k], err = withHashes(x[k], hashes); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
