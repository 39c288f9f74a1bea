package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/agents/internal/model"
	"github.com/united-workforce/uwf/agents/sandbox"
)

// endingTimeout is for the gateway, which is on this machine and knows the answer.
const endingTimeout = time.Minute

// checkEnding refuses an answer that did not come whole from its model: an agent's program hands
// it out as any other. The error is an *AnswerError then.
func (s *Session) checkEnding(ctx context.Context, answer string) error {
	e, err := askEnding(ctx, s.Environ, s.extractor.Transport, answer)
	if err != nil {
		return err
	}
	return newIncompleteError(e)
}

// CheckEnding refuses an answer that ends as a model did which was cut off or filtered, for an
// agent that may have asked its model for other things after it. The error is an *AnswerError then.
func CheckEnding(ctx context.Context, environ []string, transport http.RoundTripper, answer string) error {
	e, err := askEnding(ctx, environ, transport, answer)
	if err != nil || !e.Known {
		return err
	}
	return newIncompleteError(e)
}

// DescribeEnding says of the model's last answer that it is not whole, for an agent whose program
// failed and may not tell, as an *AnswerError; nil: it is, or nobody knows.
func (s *Session) DescribeEnding(ctx context.Context) error {
	if bad, ok := errors.AsType[*AnswerError](s.checkEnding(ctx, "")); ok {
		return bad
	}
	return nil
}

// askEnding asks the gateway how the model ended an answer.
func askEnding(ctx context.Context, environ []string, transport http.RoundTripper, answer string) (e gateway.Ending, err error) {
	url := sandbox.Getenv(environ, gateway.EnvURL)
	if url == "" {
		return e, nil
	}
	header := http.Header{"Authorization": {"Bearer " + sandbox.Getenv(environ, gateway.EnvKey)}, "Connection": {"close"}}
	// At the end of the step's time, too, there is an answer to hand over.
	status, body, err := model.Post(context.WithoutCancel(ctx), url+gateway.EndingPath, header, transport, endingTimeout, []byte(answer))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %.300s", status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	if err != nil {
		return e, fmt.Errorf("ask uwf's gateway whether the answer is whole: %w: run the step again", err)
	}
	return e, nil
}

// newIncompleteError says that an answer is not whole, and what to do; nil: it is.
func newIncompleteError(e gateway.Ending) error {
	why := e.Incomplete()
	switch {
	case why == "":
		return nil
	case e.Finish == dialect.FinishLength:
		limit := ""
		if e.Limit > 0 {
			limit = fmt.Sprintf(" of %d tokens", e.Limit)
		}
		return &AnswerError{
			Complaint:  fmt.Sprintf("Your last answer was cut off at the output limit%s. Give it again, whole and shorter, in the same form.", limit),
			Err:        fmt.Errorf("the model's answer was %s%s: raise maxOutput of the model, give the role less to do, or another model", why, limit),
			Incomplete: true,
		}
	}
	return &AnswerError{
		Complaint:  "Your last answer did not come whole: it was " + why + ". Give it again, whole, in other words and in the same form.",
		Err:        errors.New("the model's answer was " + why + ": change the prompt, or give the role another model"),
		Incomplete: true,
	}
}
