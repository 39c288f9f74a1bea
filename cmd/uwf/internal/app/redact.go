package app

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/engine/redact"
)

// Redactor knows the secrets of the configuration, of the environment and of the
// store's remote. It is made once.
func (f *Factory) Redactor(ctx context.Context) (*redact.Redactor, error) {
	f.redactOnce.Do(func() { f.redactor, f.redactErr = redactorMaker{f}.makeRedactor(ctx) })
	return f.redactor, f.redactErr
}

// redactorMaker makes the redactor of what is printed and kept.
type redactorMaker struct{ *Factory }

func (f redactorMaker) makeRedactor(ctx context.Context) (*redact.Redactor, error) {
	red, err := f.localRedactor()
	if err != nil {
		return nil, err
	}
	remote, err := credentials(f).remoteSecrets(ctx)
	if err != nil {
		return nil, err
	}
	if red, err = red.With(remote...); err != nil {
		return nil, &UsageError{Err: fmt.Errorf("redact: %w", err)}
	}
	f.Log().Redact(red) // it knows the remote's password too
	return red, nil
}

func (f redactorMaker) localRedactor() (*redact.Redactor, error) {
	c, err := f.Config()
	if err != nil {
		return nil, err
	}
	red, err := redact.New(c.RedactOptions())
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("redact: %w", err)}
	}
	return red, nil
}

// CleanMessage takes secrets out of a message. Where the configuration can't be
// read it knows those of the environment.
func (f *Factory) CleanMessage(msg string) string {
	red := f.redactor
	if red == nil {
		var err error
		if red, err = (redactorMaker{f}).localRedactor(); err != nil {
			if red, err = redact.New(redact.Options{Secrets: redact.FromEnv(f.Environ)}); err != nil {
				return "a message that could not be searched for secrets was left out"
			}
		}
	}
	clean, _ := red.String(msg)
	return clean
}

// NoSecret refuses a value that holds a known secret. It is for what is stored as
// it is: redacted it would be something else.
func (f *Factory) NoSecret(ctx context.Context, what string, v any) error {
	red, err := f.Redactor(ctx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	found, err := red.Find(b)
	if err != nil {
		return fmt.Errorf("check %s for secrets: %w", what, err)
	}
	for _, s := range found {
		if s.Known {
			return Usagef("%s holds a secret (%s); take it out: what is stored can be read by everybody who can read the repository", what, s.Name)
		}
	}
	return nil
}
