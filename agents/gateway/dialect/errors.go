package dialect

// ErrorBody is an error as the dialect's own provider would send it: clients
// show the message of this form and of no other. code is a short stable name as
// in "budget_exceeded".
func ErrorBody(d Dialect, status int, code, message string) []byte {
	var v any
	if d == Messages {
		v = object{"type": "error", "error": object{"type": anthropicErrorType(status), "message": message}}
	} else {
		v = object{"error": object{"message": message, "type": openAIErrorType(status), "param": nil, "code": code}}
	}
	b, err := encodeJSON(v)
	if err != nil { // strings always encode
		return []byte("{}")
	}
	return b
}

// ErrorEvent is the same error inside a stream that has begun already.
func ErrorEvent(d Dialect, status int, code, message string) []byte {
	body := ErrorBody(d, status, code, message)
	switch d {
	case Messages:
		return []byte("\n\nevent: error\ndata: " + string(body) + "\n\n")
	case Responses:
		b, err := encodeJSON(object{"type": "error", "code": code, "message": message, "param": nil})
		if err != nil {
			b = body
		}
		return []byte("\n\nevent: error\ndata: " + string(b) + "\n\n")
	default:
		return []byte("\n\ndata: " + string(body) + "\n\n")
	}
}

func anthropicErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func openAIErrorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 429:
		return "rate_limit_error"
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
	o := asObject(v)
	if o == nil {
		if l := asList(v); len(l) > 0 { // Google's OpenAI-compatible API sends a list
			o = asObject(l[0])
		}
	}
	if isEmpty(o["error"]) {
		message = asString(o["message"])                    // vLLM
		if d := o["detail"]; message == "" && !isEmpty(d) { // FastAPI servers
			if message = asString(d); message == "" {
				message = jsonText(d)
			}
		}
		return "", message
	}
	e := errorOf(o)
	return e.Code, e.Message
}

func jsonText(v any) string {
	b, err := encodeJSON(v)
	if err != nil { // v came out of JSON
		return ""
	}
	return string(b)
}
