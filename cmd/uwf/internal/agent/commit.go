package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// maxDetail bounds the file of --detail, in bytes.
const maxDetail = 64 << 20

// commitOptions are the flags of `uwf agent commit`.
type commitOptions struct {
	Options
	file   string // of the answer; "-": stdin
	detail string // file with nodes; empty: none
	usage  string // JSON; empty: none
}

func newCommitCmd(o Options) *cobra.Command {
	c := commitOptions{Options: o, file: "-"}
	cmd := &cobra.Command{
		Use:   "commit [FILE|-]",
		Short: "Check an answer, stage its step, and print the handle",
		Long: `Check an answer, stage its step, and print the handle.

The answer is Markdown with the frontmatter that the prompt asks for, in FILE or on
stdin. When it does not fit, the command exits 1, and what it prints on stderr can
be given to the model as it is: let it answer again, and commit that.

--detail names a JSON file with a node {"type", "payload"}, or a list of nodes of
which the last is the detail and refers to the others. --usage is a JSON object:
{"turns", "inputTokens", "outputTokens", "costUsd"}.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.file = args[0]
			}
			return c.run()
		},
	}
	cmd.Flags().StringVar(&c.detail, "detail", "", "`FILE` with the nodes that tell how the answer came about")
	cmd.Flags().StringVar(&c.usage, "usage", "", "what the run cost, as `JSON`")
	return cmd
}

func (o commitOptions) run() (err error) {
	text, err := o.answer()
	if err != nil {
		return err
	}
	usage, err := parseUsage(o.usage)
	if err != nil {
		return err
	}
	c, err := agents.LoadContext(o.getenv(agents.EnvContext))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	stage, err := agents.OpenStage(o.getenv(agents.EnvStage), c, o.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	detail, err := stageDetail(stage, o.detail)
	if err != nil {
		return err
	}
	handle, err := agents.Commit(c, stage, agents.Answer{Text: text, Detail: detail, Usage: usage})
	var bad *agents.AnswerError
	if errors.As(err, &bad) {
		return errors.New(bad.Complaint)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Stdout, handle)
	return err
}

// answer reads what the agent wrote, up to a byte more than is taken.
func (o commitOptions) answer() (string, error) {
	r := o.Stdin
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return "", fmt.Errorf("reading the answer: %w", err)
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, agents.MaxAnswer+1))
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return string(b), nil
}

func parseUsage(text string) (record.Usage, error) {
	var u record.Usage
	if text == "" {
		return u, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&u); err != nil {
		return u, fmt.Errorf("--usage: %w", err)
	}
	if u.Turns < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CostUSD < 0 {
		return u, errors.New("--usage: nothing in it may be negative")
	}
	return u, nil
}

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
	var last node.Hash
	for i, item := range list {
		if last, err = stageNode(stage, item); err != nil {
			return "", fmt.Errorf("detail %s, node %d: %w", file, i+1, err)
		}
	}
	if last == "" {
		return "", fmt.Errorf("detail %s: it holds no node", file)
	}
	return last, nil
}

func stageNode(stage *agents.Stage, v any) (node.Hash, error) {
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
	return stage.Put(h, payload)
}
