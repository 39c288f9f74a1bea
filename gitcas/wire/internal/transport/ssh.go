package transport

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
)

// sshTarget is where an ssh remote is.
type sshTarget struct{ user, host, port, path string }

// sshTransport reaches a repository through the system's ssh, one connection a
// request.
type sshTransport struct {
	sshTarget
	o Options
	// ahead is how far the server's clock is ahead of this machine's, asked once.
	ahead func() (d time.Duration, known bool)
}

func newSSHTransport(t sshTarget, o Options) (*sshTransport, error) {
	switch {
	case t.host == "" || t.path == "" || t.path == "/":
		return nil, fmt.Errorf("%w: an ssh remote needs a host and a path", fault.ErrInvalid)
	case strings.HasPrefix(t.host, "-") || strings.HasPrefix(t.user, "-") || strings.HasPrefix(t.path, "-"):
		// ssh, and git on the other side, would take it for an option.
		return nil, fmt.Errorf("%w: user, host or path of an ssh remote begins with '-'", fault.ErrInvalid)
	case strings.ContainsAny(t.user+t.host, " \t\r\n\x00@/"):
		return nil, fmt.Errorf("%w: %q is no user and host", fault.ErrInvalid, t.user+"@"+t.host)
	case strings.ContainsAny(t.path, "\x00\r\n"):
		return nil, fmt.Errorf("%w: a control character in the path", fault.ErrInvalid)
	}
	if t.port != "" {
		if n, err := strconv.ParseUint(t.port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%w: port %q", fault.ErrInvalid, t.port)
		}
	}
	tr := &sshTransport{sshTarget: t, o: o}
	tr.ahead = sync.OnceValues(tr.askAhead)
	return tr, nil
}

// hostDateTimeout is how long a server's clock is asked for.
const hostDateTimeout = 3 * time.Second

// askAhead compares the server's clock, which ssh does not tell, with this machine's.
func (t *sshTransport) askAhead() (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), hostDateTimeout)
	defer cancel()
	at, err := t.o.HostDate(ctx, t.host)
	return at.Sub(t.o.Now()), err == nil
}

// HostDate is the Date of https://<host>/, whatever else that answers. Nothing of the
// caller goes there but the request.
func HostDate(ctx context.Context, host string) (time.Time, error) {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return dateOf(ctx, &http.Client{}, "https://"+host+"/")
}

// dateOf is the Date of the first answer to a request, whatever that says.
func dateOf(ctx context.Context, client *http.Client, address string) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return time.Time{}, err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_ = resp.Body.Close()
	return http.ParseTime(resp.Header.Get("Date"))
}

func (t *sshTransport) URL() string {
	u := url.URL{Scheme: "ssh", Host: t.host, Path: "/" + strings.TrimPrefix(t.path, "/")}
	if strings.Contains(t.host, ":") {
		u.Host = "[" + t.host + "]"
	}
	if t.port != "" {
		u.Host += ":" + t.port
	}
	if t.user != "" {
		u.User = url.User(t.user)
	}
	return u.String()
}

func (t *sshTransport) Exchange(ctx context.Context, c Call) (*Answer, error) {
	go t.ahead() // while ssh connects
	ch, err := t.startProgram(ctx, c)
	if err != nil {
		return nil, err
	}
	if !c.Advert {
		if err := answerGreeting(ch.out, &c); err != nil {
			return nil, ch.waitForEnd(err)
		}
		ch.writeRequest(c.made)
	}
	ahead, known := t.ahead()
	a := ch.newAnswer(t.o.Now())
	if a.Guessed = !known; known {
		a.At = a.At.Add(ahead)
	}
	return a, nil
}

// answerGreeting reads what the server says first, and makes the request for it.
func answerGreeting(said io.Reader, c *Call) error {
	caps, v2, err := readGreeting(said)
	switch {
	case err != nil:
		return err
	case c.V2 && !v2:
		return fault.ErrRefused
	}
	return c.makeBody(caps)
}

// readGreeting reads the capabilities of version 2, or those of version 0 and over the refs
// behind them.
func readGreeting(r io.Reader) (caps Caps, v2 bool, err error) {
	caps = Caps{}
	p := pktline.NewReader(r, MaxRefs)
	kind, line, err := p.Line()
	if err != nil || kind == pktline.Flush {
		return caps, false, err
	}
	if line != "version 2" {
		_, list, _ := strings.Cut(line, "\x00")
		if err := caps.Add(list); err != nil {
			return nil, false, err
		}
		return caps, false, p.SkipToFlush()
	}
	for {
		kind, line, err = p.Line()
		if err != nil || kind == pktline.Flush {
			return caps, true, err
		}
		if err := caps.Add(line); err != nil {
			return nil, true, err
		}
	}
}

func (t *sshTransport) startProgram(ctx context.Context, c Call) (*child, error) {
	// The variables that ssh, its agent and its proxies live on.
	env := cleanEnv(t.o.Env, []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "USERPROFILE",
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "KRB5CCNAME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
		"GIT_SSH", "GIT_SSH_COMMAND",
	}, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never")
	args := []string{"-o", "BatchMode=yes"}
	if c.V2 {
		env = append(env, "GIT_PROTOCOL=version=2")
		args = append(args, "-o", "SendEnv=GIT_PROTOCOL")
	}
	if t.port != "" {
		args = append(args, "-p", t.port)
	}
	host := t.host
	if t.user != "" {
		host = t.user + "@" + host
	}
	args = append(args, host, c.Service+" "+shellQuote(t.path))
	cmd := lookupEnv(t.o.Env, "GIT_SSH_COMMAND")
	if cmd == "" && t.o.SSHCommand != nil {
		cmd = t.o.SSHCommand(ctx)
	}
	if cmd != "" {
		return startChild(ctx, t.o, env, "sh", append([]string{"-c", cmd + ` "$@"`, cmd}, args...)...)
	}
	return startChild(ctx, t.o, env, cmp.Or(lookupEnv(t.o.Env, "GIT_SSH"), "ssh"), args...)
}

// shellQuote makes one word of s for the shell on the other side.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(s) + "'"
}
