package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/regular"
)

// maxContextFile bounds one file of the context folder, in bytes.
const maxContextFile = 16 << 20

// ErrNoContext: the process was not started as an agent.
var ErrNoContext = errors.New("not running as an agent: " + EnvContext + " and " + EnvStage + " are not set (uwf sets them when it starts an agent)")

// Context is what an agent knows: the content of the folder that UWF_CONTEXT
// names. It is safe for concurrent use.
type Context struct {
	// Task is context.json. Its Nodes, Workspace, Command and Timeout are not set.
	Task task.Task

	nodes nodeLines
}

// LoadContext reads a context folder.
func LoadContext(dir string) (c *Context, err error) {
	if dir == "" {
		return nil, ErrNoContext
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the agent's context: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	c = &Context{}
	b, err := regular.Read(root, taskFile, maxContextFile)
	if err == nil {
		err = json.Unmarshal(b, &c.Task)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the agent's task in %s/%s: %w", dir, taskFile, err)
	}
	if c.nodes, err = readNodes(root); err != nil {
		return nil, fmt.Errorf("reading the nodes of the agent's context in %s/%s: %w", dir, nodesFile, err)
	}
	return c, nil
}

// Get reads one of the nodes that the agent may read: the thread's chain, its
// outputs and bodies, the workflow, and their schemas. It implements node.Getter. A hash
// by which steps refer to different nodes is ErrSeveral: see GetOf.
func (c *Context) Get(h node.Hash) (node.Node, error) { return c.GetOf("", h) }

// GetOf is Get for what one step of the thread refers to.
func (c *Context) GetOf(of, h node.Hash) (node.Node, error) {
	if !h.Valid() {
		return node.Node{}, fmt.Errorf("%q is no node hash: %w", h, node.ErrNotFound)
	}
	n, err := c.nodes.readNode(of, h)
	if errors.Is(err, node.ErrNotFound) {
		return node.Node{}, fmt.Errorf("node %s is not in the agent's context: %w", h, err)
	}
	if err != nil {
		return node.Node{}, fmt.Errorf("reading node %s of the agent's context: %w", h, err)
	}
	return n, nil
}

// OutputSchema is the JSON schema that the fields of the answer must fit.
func (c *Context) OutputSchema() (any, error) {
	n, err := c.Get(c.Task.OutputSchema)
	if err != nil {
		return nil, fmt.Errorf("the output schema of role %s: %w", c.Task.Role, err)
	}
	return n.Payload, nil
}

// Steps are the thread's newest steps, oldest first: those that the prompt may show.
func (c *Context) Steps() ([]record.Step, error) {
	var out []record.Step
	seen := map[node.Hash]bool{}
	for h := c.Task.Prev; h != nil; {
		if seen[*h] {
			return nil, fmt.Errorf("the thread's chain comes back to step %s", *h)
		}
		seen[*h] = true
		n, err := c.Get(*h)
		if errors.Is(err, node.ErrNotFound) && len(out) > 0 {
			break // those before it are left out
		}
		if err != nil {
			return nil, fmt.Errorf("the thread's chain: %w", err)
		}
		step, err := record.ParseStep(n)
		if err != nil {
			return nil, fmt.Errorf("step %s of the thread's chain: %w", *h, err)
		}
		out = append(out, step)
		h = step.Prev
	}
	slices.Reverse(out)
	return out, nil
}
