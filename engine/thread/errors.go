package thread

// cleanError is an error whose text held a secret: of an agent's stderr, say.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Unwrap() error { return e.err }

// cleanError takes secrets out of what an error says.
func (e *Engine) cleanError(err error) error {
	text, found, rerr := e.Redact.Value(err.Error())
	switch {
	case rerr != nil:
		return &cleanError{"the step ended with an error that could not be checked for secrets, so it is not shown: " + rerr.Error(), err}
	case found == 0:
		return err
	}
	clean, _ := text.(string)
	return &cleanError{clean, err}
}
