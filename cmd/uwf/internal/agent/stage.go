package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// maxDetail bounds a file of nodes, in bytes.
const maxDetail = 64 << 20

// nodeTypes are the schemas that have a name here: a script need not know hashes.
func nodeTypes() map[string]node.Hash {
	return map[string]node.Hash{
		"text": node.String, "detail": record.BrokerDetailSchema,
		"builtin-detail": record.BuiltinDetailSchema, "builtin-turn": record.BuiltinTurnSchema,
		"claude-code-detail": record.ClaudeCodeDetailSchema, "claude-code-turn": record.ClaudeCodeTurnSchema,
		"hermes-detail": record.HermesDetailSchema, "turn": record.TurnSchema,
	}
}

func newStageCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "stage [FILE|-]",
		Short: "Stage nodes that tell how an answer comes about, and print their hashes",
		Long: `Stage nodes that tell how an answer comes about, such as the turns of a conversation,
and print the hash of each. What is staged is kept when the agent is killed, and is
part of the step when the detail that commit is given refers to it.

FILE, or stdin, holds a node {"type", "payload"}, or a list of nodes. A type is the
hash of a schema or one of these names: ` + strings.Join(typeNames(), ", ") + `.
A payload that does not fit its schema is refused, with the reason.`,
		Example: `  uwf agent stage turn.json
  echo '{"type": "text", "payload": "what the tool printed"}' | uwf agent stage`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			file := "-"
			if len(args) == 1 {
				file = args[0]
			}
			_, stage, err := o.openStage()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stage.Close()) }()
			hashes, err := o.stageNodes(stage, file)
			if err != nil {
				return fmt.Errorf("staging %s: %w", file, err)
			}
			for _, h := range hashes {
				if _, err := fmt.Fprintln(o.Stdout, h); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func typeNames() []string { return slices.Sorted(maps.Keys(nodeTypes())) }

// openContext opens the task's folder. Outside of a step there is none.
func (o Options) openContext() (*agents.Context, error) {
	c, err := agents.LoadContext(sandbox.Getenv(o.Environ, agents.EnvContext))
	if errors.Is(err, agents.ErrNoContext) {
		return nil, &app.UsageError{Err: err}
	}
	return c, err
}

// openStage opens the folders of the protocol. The stage has to be closed.
func (o Options) openStage() (*agents.Context, *agents.Stage, error) {
	c, err := o.openContext()
	if err != nil {
		return nil, nil, err
	}
	stage, err := agents.OpenStage(sandbox.Getenv(o.Environ, agents.EnvStage), c, o.Now)
	return c, stage, err
}

// stageDetail stages the nodes of a file and returns the last one's hash.
func (o Options) stageDetail(stage *agents.Stage, file string) (node.Hash, error) {
	if file == "" {
		return "", nil
	}
	hashes, err := o.stageNodes(stage, file)
	if err != nil {
		return "", fmt.Errorf("detail %s: %w", file, err)
	}
	return hashes[len(hashes)-1], nil
}

// stageNodes stages the nodes of a file, or of stdin, in their order.
func (o Options) stageNodes(stage *agents.Stage, file string) ([]node.Hash, error) {
	b, err := o.readWhole(file, maxDetail)
	if err != nil {
		return nil, err
	}
	v, err := node.ParseJSON(b)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []node.Hash
	for i, item := range list {
		h, err := stageNode(stage, item)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", i+1, err)
		}
		out = append(out, h)
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no node")
	}
	return out, nil
}

func stageNode(stage *agents.Stage, v any) (node.Hash, error) {
	m, ok := v.(map[string]any)
	typ, isText := m["type"].(string)
	payload, has := m["payload"]
	if !ok || !isText || !has {
		return "", errors.New(`a node is {"type": HASH or NAME, "payload": …}`)
	}
	h, named := nodeTypes()[typ]
	if !named {
		var err error
		if h, err = node.ReadHash(typ); err != nil {
			return "", fmt.Errorf("%w; a type is a hash or one of %s", err, strings.Join(typeNames(), ", "))
		}
	}
	return stage.Put(h, payload)
}
