package acp

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// envServer makes the test binary a server.
const envServer = "ACP_TEST_SERVER"

func TestMain(m *testing.M) {
	if name := os.Getenv(envServer); name != "" {
		if err := servers[name](&server{in: bufio.NewReader(os.Stdin), out: os.Stdout}); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// handshake answers what comes before the first prompt, and reads that.
func handshake(s *server) (prompt received, err error) {
	for _, line := range []string{hello, session} {
		if _, err := s.next(); err != nil {
			return prompt, err
		}
		s.print(line)
	}
	return s.next()
}

const planted = ".mcp.json"

// servers are what the test binary may be.
var servers = map[string]func(*server) error{
	// correct gives an answer that can't be taken, and then one that says whether it sees what
	// it wrote for tools like itself.
	"correct": func(s *server) error {
		if _, err := handshake(s); err != nil {
			return err
		}
		if err := os.WriteFile(planted, []byte("{}"), 0o600); err != nil {
			return err
		}
		s.print(say("All done."), ended)
		m, err := s.next()
		if err != nil || !strings.Contains(string(m.Params), "frontmatter") {
			return fmt.Errorf("no complaint: %s %w", m.Params, err)
		}
		_, err = os.Stat(planted)
		s.print(say("---\n$status: done\nnote: "+fmt.Sprint("planted: ", err == nil)+"\n---\nfine\n"), strings.Replace(ended, "3", "4", 1))
		_, err = s.next() // the end
		return err
	},
	// environ answers with what it finds in its environment.
	"environ": func(s *server) error {
		m, err := handshake(s)
		if err != nil {
			return err
		}
		env := os.Environ()
		slices.Sort(env)
		s.print(say("---\n$status: done\n---\n"+strings.Join(env, "\n")+"\n"+string(m.Params)), ended)
		_, err = s.next()
		return err
	},
	"exit": func(*server) error { return errors.New("unknown option --acp \x1b[2J") },
	"help": func(s *server) error {
		s.print("Usage: prog [prompt]")
		return nil
	},
	"login": func(s *server) error {
		if _, err := s.next(); err != nil {
			return err
		}
		s.print(hello, `{"id":2,"error":{"code":-32000,"message":"Authentication required"}}`)
		_, err := s.next()
		_, _ = s.next()
		return err
	},
	"die": func(s *server) error {
		if _, err := handshake(s); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stderr, "about to die")
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	},
	"empty": func(s *server) error {
		_, err := handshake(s)
		s.print(say("\n"), ended)
		_, _ = s.next()
		return err
	},
	// stubborn starts a child in a session of its own. Neither heeds SIGTERM, and no cancelling
	// is answered.
	"stubborn": func(s *server) error {
		if _, err := handshake(s); err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; echo $$ > child.pid; sleep 1000; sleep 1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		for {
			if b, err := os.ReadFile("child.pid"); err == nil && len(b) > 0 {
				break
			}
		}
		s.print(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","title":"started"}}}`)
		for {
			if _, err := s.next(); err != nil {
				select {} // its input's end is no reason either
			}
		}
	},
}
