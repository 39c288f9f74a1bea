package cas

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// What is typed reaches the run: arguments, flags, and where nodes are looked for.
func TestArgumentsReachTheRun(t *testing.T) {
	f := &app.Factory{IO: app.IO{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
	ctx := t.Context()

	var get *LookOptions
	cmd := NewCmdGet(f, func(_ context.Context, o *LookOptions) error { get = o; return nil })
	cmd.SetArgs([]string{"T:2", "HASH"})
	if err := cmd.ExecuteContext(ctx); err != nil || get.Hash != "HASH" || get.Where != "T:2" || get.Factory != f {
		t.Errorf("get: %+v, %v", get, err)
	}

	var put *PutOptions
	cmd = NewCmdPut(f, func(_ context.Context, o *PutOptions) error { put = o; return nil })
	cmd.SetArgs([]string{"string", "file.json"})
	if err := cmd.ExecuteContext(ctx); err != nil || put.Type != "string" || put.Data != "file.json" {
		t.Errorf("put: %+v, %v", put, err)
	}

	var verify *LookOptions
	cmd = NewCmdVerify(f, func(_ context.Context, o *LookOptions) error { verify = o; return nil })
	cmd.SetArgs([]string{"HASH"})
	if err := cmd.ExecuteContext(ctx); err != nil || verify.Hash != "HASH" || verify.Where != "" {
		t.Errorf("verify: %+v, %v", verify, err)
	}
}

// The names of types are those of JSON Schema, and the meta-schema's.
func TestTypeNames(t *testing.T) {
	if got := namedTypes(); len(got) != 8 || got["schema"] != "CTS5P6RD8HMCS" || got["string"] != "7VQ43ZSJTEWA7" || got["object"] != "944RT37WX1PQ5" {
		t.Errorf("%v", got)
	}
}
