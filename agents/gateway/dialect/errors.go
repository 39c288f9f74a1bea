package dialect

import (
	"cmp"
	"fmt"
	"slices"
)

// StreamError is an error that a provider reports inside an answer of status 200.
type StreamError struct {
	Code    string // its type or code; may be empty
	Message string
}

func (e *StreamError) Error() string {
	if e.Code == "" {
		return "the provider reports: " + e.Message
	}
	return fmt.Sprintf("the provider reports %s: %s", e.Code, e.Message)
}

// Temporary says whether asking again may help.
func (e *StreamError) Temporary() bool {
	return slices.Contains([]string{"overloaded_error", "rate_limit_error", "api_error", "server_error", "rate_limit_exceeded",
		"408", "429", "500", "502", "503", "504", "529"}, e.Code)
}

// errorOf reads {"error": {type, code, message}} or {"error": "text"}.
func errorOf(o object) *StreamError {
	if s := asString(o["error"]); s != "" {
		return &StreamError{Message: s}
	}
	e := asObject(o["error"])
	return &StreamError{Code: cmp.Or(asString(e["code"]), string(asNumber(e["code"])), asString(e["type"])), Message: asString(e["message"])}
}

// ErrorBody is an error as the dialect's own provider would send it: clients
// show the message of this form and of no other. code is a short stable name as
// in "budget_exceeded".
func ErrorBody(d Dialect, status int, code, message string) []byte {
	kind := errorType(d, status)
	switch d {
	case Gemini:
		return writeJSON(geminiError(status, code, message))
	case Messages:
		return writeJSON(object{"type": "error", "error": object{"type": kind, "message": message}})
	}
	return writeJSON(object{"error": object{"message": message, "type": kind, "param": nil, "code": code}})
}

// ErrorEvent is the same error inside a stream that has begun already.
func ErrorEvent(d Dialect, status int, code, message string) []byte {
	body := ErrorBody(d, status, code, message)
	if d == Chat || d == Gemini {
		return fmt.Appendf(nil, "\n\ndata: %s\n\n", body)
	}
	if d == Responses {
		body = writeJSON(object{"type": "error", "code": code, "message": message, "param": nil})
	}
	return fmt.Appendf(nil, "\n\nevent: error\ndata: %s\n\n", body)
}

// errorType is what the dialect calls errors of a status.
func errorType(d Dialect, status int) string {
	anthropic := map[int]string{403: "permission_error", 404: "not_found_error", 413: "request_too_large"}
	switch {
	case status == 401:
		return "authentication_error"
	case status == 429:
		return "rate_limit_error"
	case d == Messages && anthropic[status] != "":
		return anthropic[status]
	case d == Messages && status >= 500:
		return "api_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// ErrorMessage finds the code and the message in an error body of any dialect.
// Both are empty where the body is something else.
func ErrorMessage(body []byte) (code, message string) {
	v, err := decodeJSON(body)
	if err != nil {
		return "", ""
	}
	if l := asList(v); len(l) > 0 { // Google's OpenAI-compatible API sends a list
		v = l[0]
	}
	o := asObject(v)
	if !isEmpty(o["error"]) {
		e := errorOf(o)
		return e.Code, e.Message
	}
	message = cmp.Or(asString(o["message"]), asString(o["detail"])) // vLLM; FastAPI servers
	if message == "" && !isEmpty(o["detail"]) {
		message = string(writeJSON(o["detail"]))
	}
	return "", message
}
