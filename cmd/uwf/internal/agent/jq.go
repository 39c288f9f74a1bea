package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// maxJSON bounds each input of `uwf agent jq`, in bytes.
const maxJSON = 64 << 20

func newJQCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "jq [OPTIONS] FILTER [FILE|-]",
		Short: "The jq language for scripts on machines without jq",
		Long: `The jq language for scripts on machines without jq: a filter over JSON from FILE or
stdin. These of jq's options are understood, as jq does:

  -r, --raw-output        print text as it is, not as JSON
  -j, --join-output       the same, without a newline after each result
  -c, --compact-output    one line for each result
  -n, --null-input        don't read anything; the input is null
  -R, --raw-input         the input is text, a string for each line
  -s, --slurp             all inputs as one list; with -R the whole text as one string
  -e, --exit-status       exit 1 when the last result is false or null
  --arg NAME VALUE        sets $NAME to a text
  --argjson NAME JSON     sets $NAME to a value
  --rawfile NAME FILE     sets $NAME to the text of a file
  --slurpfile NAME FILE   sets $NAME to the list of a file's values

Filters see neither the environment nor any file that is not named like this.`,
		Example: `  uwf agent context | uwf agent jq -r .model.name
  uwf agent jq -n --arg q "What is 2+2?" '{messages: [{role: "user", content: $q}]}'
  uwf agent jq -r '.choices[0].message.content' answer.json`,
		DisableFlagParsing: true, // --arg takes two words
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) {
				return cmd.Help()
			}
			q, err := parseJQ(args, func(name string) ([]byte, error) { return o.readWhole(name, maxJSON) })
			if err != nil {
				return &app.UsageError{Err: fmt.Errorf("uwf agent jq: %w", err)}
			}
			return q.runFilter(cmd.Context(), o.Stdout)
		},
	}
}

// jqCall is one call of `uwf agent jq`.
type jqCall struct {
	raw, join, compact, null, text, slurp, status bool

	code   *gojq.Code
	values []any // of the variables
	inputs []any
}

// parseJQ reads the command line and everything that it names.
func parseJQ(args []string, read func(string) ([]byte, error)) (*jqCall, error) {
	q := &jqCall{}
	var names, rest []string
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			rest, args = append(rest, args...), nil
		case strings.HasPrefix(a, "--") && takesTwoArguments(a):
			if len(args) < 2 {
				return nil, fmt.Errorf("%s takes a name and a value", a)
			}
			v, err := parseVariable(a, args[1], read)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", a, args[0], err)
			}
			names, q.values = append(names, "$"+args[0]), append(q.values, v)
			args = args[2:]
		case strings.HasPrefix(a, "-") && a != "-":
			if err := q.readOption(a); err != nil {
				return nil, err
			}
		default:
			rest = append(rest, a)
		}
	}
	if len(rest) == 0 || len(rest) > 2 {
		return nil, errors.New("give a filter, and one file at most; see uwf agent jq --help")
	}
	if err := q.compileFilter(rest[0], names); err != nil {
		return nil, err
	}
	if q.null {
		q.inputs = []any{nil}
		return q, nil
	}
	file := "-"
	if len(rest) == 2 {
		file = rest[1]
	}
	b, err := read(file)
	if err == nil {
		q.inputs, err = q.splitInputs(b)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the input: %w", err)
	}
	return q, nil
}

// takesTwoArguments reports whether an option is followed by a name and a value.
func takesTwoArguments(option string) bool {
	return slices.Contains([]string{"--arg", "--argjson", "--rawfile", "--slurpfile"}, option)
}

func parseVariable(option, value string, read func(string) ([]byte, error)) (any, error) {
	switch option {
	case "--arg":
		return value, nil
	case "--argjson":
		list, err := jsonValues([]byte(value))
		if err == nil && len(list) != 1 {
			err = errors.New("one JSON value is wanted")
		}
		if err != nil {
			return nil, err
		}
		return list[0], nil
	}
	b, err := read(value)
	if err != nil {
		return nil, err
	}
	if option == "--rawfile" {
		return strings.ToValidUTF8(string(b), "\uFFFD"), nil
	}
	list, err := jsonValues(b)
	return list, err
}

// readOption reads one word of options; short ones may stand together.
func (q *jqCall) readOption(word string) error {
	options := map[string]*bool{
		"raw-output": &q.raw, "join-output": &q.join, "compact-output": &q.compact, "null-input": &q.null,
		"raw-input": &q.text, "slurp": &q.slurp, "exit-status": &q.status,
		"r": &q.raw, "j": &q.join, "c": &q.compact, "n": &q.null, "R": &q.text, "s": &q.slurp, "e": &q.status,
	}
	dash, names := "-", strings.Split(word[1:], "")
	if long, ok := strings.CutPrefix(word, "--"); ok {
		dash, names = "--", []string{long}
	}
	for _, name := range names {
		if options[name] == nil {
			return fmt.Errorf("the option %s%s is not known here; see uwf agent jq --help", dash, name)
		}
		*options[name] = true
	}
	return nil
}

func (q *jqCall) compileFilter(filter string, names []string) error {
	query, err := gojq.Parse(filter)
	if err != nil {
		return fmt.Errorf("the filter %q: %w", filter, err)
	}
	q.code, err = gojq.Compile(query, gojq.WithVariables(names), gojq.WithEnvironLoader(func() []string { return nil }))
	if err != nil {
		return fmt.Errorf("the filter %q: %w", filter, err)
	}
	return nil
}

// splitInputs makes the inputs of the filter.
func (q *jqCall) splitInputs(b []byte) ([]any, error) {
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	switch {
	case q.text && q.slurp:
		return []any{text}, nil
	case q.text:
		var out []any
		for line := range strings.Lines(text) {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
		return out, nil
	}
	list, err := jsonValues(b)
	if q.slurp {
		return []any{list}, err
	}
	return list, err
}

// jsonValues are the JSON values of a text, one after the other.
func jsonValues(b []byte) ([]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	out := []any{}
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, fmt.Errorf("no JSON after byte %d: %w", d.InputOffset(), err)
		}
		out = append(out, v)
	}
}

func (q *jqCall) runFilter(ctx context.Context, w io.Writer) error {
	var last any = true
	for _, in := range q.inputs {
		results := q.code.RunWithContext(ctx, in, q.values...)
		for {
			v, more := results.Next()
			if !more {
				break
			}
			if err, failed := v.(error); failed {
				if halt := (*gojq.HaltError)(nil); errors.As(err, &halt) && halt.Value() == nil {
					break
				}
				return fmt.Errorf("uwf agent jq: %w", err)
			}
			if err := q.printValue(w, v); err != nil {
				return err
			}
			last = v
		}
	}
	if q.status && (last == nil || last == false) {
		return &app.Exit{Code: 1}
	}
	return nil
}

func (q *jqCall) printValue(w io.Writer, v any) error {
	end := "\n"
	if q.join {
		end = ""
	}
	if text, ok := v.(string); ok && (q.raw || q.join) {
		_, err := io.WriteString(w, text+end)
		return err
	}
	b, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	if !q.compact && !q.join {
		var indented bytes.Buffer
		if err := json.Indent(&indented, b, "", "  "); err != nil {
			return err
		}
		b = indented.Bytes()
	}
	_, err = w.Write(append(b, end...))
	return err
}
