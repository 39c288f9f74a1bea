package event

// ParseCommand finds the first line of a comment that begins with /uwf, outside of
// code blocks, quotes and HTML comments. Without one it returns nil. A line that
// can't be understood is a *CommandError, whose text is an answer to the person.
func ParseCommand(body string) (*Command, error) { return nil, nil }

// CommandError is a /uwf line that can't be understood.
type CommandError struct{ Msg string }

func (e *CommandError) Error() string { return e.Msg }

// Option is the value of --name=value; ok is false where the line has it not.
func (c *Command) Option(name string) (value string, ok bool) { return "", false }

// Words are the line's words that are no options.
func (c *Command) Words() []string { return c.Args }
