package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience bounds what nobody answers.
const patience = time.Minute

// askByUDP sends a packet and waits for what comes back.
func askByUDP(address string) error {
	c, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}

// answerUDP sends each packet back.
func answerUDP(p *place) string {
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	p.must(err)
	p.Cleanup(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 1)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
	return c.LocalAddr().String()
}

// rebind takes from a socket what may be bound to it, and connects.
func rebind(address string) error {
	to, err := loopback(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MINTTL, 0)
	_ = unix.BindToDevice(fd, "")
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, 0)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TTL, 64)
	return unix.Connect(fd, to)
}

// reconnect connects both ends of a connection to oneself to somebody else.
func reconnect(address string) error {
	to, err := loopback(address)
	if err != nil {
		return err
	}
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(server, 1)); err != nil {
		return err
	}
	own, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	if err := unix.Connect(client, own); err != nil {
		return err
	}
	accepted, _, err := unix.Accept(server)
	if err != nil {
		return err
	}
	var refused error
	for _, fd := range []int{client, accepted} {
		var none unix.RawSockaddr // AF_UNSPEC
		if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none)); errno != 0 {
			return errno
		}
		if refused = unix.Connect(fd, to); refused == nil {
			return nil
		}
	}
	return refused
}

// useLoopback talks to servers of one's own, by all the addresses that tests use.
func useLoopback() error {
	for _, a := range [][2]string{{"127.0.0.1:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.1"}, {":0", "localhost"}, {"[::1]:0", "::1"}, {"[::]:0", "::1"}, {"[::]:0", "127.0.0.1"}} {
		l, err := net.Listen("tcp", a[0])
		if err != nil {
			return fmt.Errorf("listen on %s: %w", a[0], err)
		}
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}
		}()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		c, err := net.DialTimeout("tcp", net.JoinHostPort(a[1], port), patience)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", a[1], a[0], err)
		}
		sent := strings.Repeat("x", 1<<20)
		go func() { _, _ = io.WriteString(c, sent); _ = c.(*net.TCPConn).CloseWrite() }()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != sent {
			return fmt.Errorf("%d bytes came back: %w", len(got), err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			return err
		}
		if _, err := net.DialTimeout("tcp", net.JoinHostPort(a[1], port), patience); err == nil {
			return errors.New("nobody listens")
		}
	}
	return nil
}

// serveOnce listens, says where, and waits for a connection, or for a file that ends it.
func serveOnce(file string) error {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", []byte(l.Addr().String()), 0o644); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	for {
		select {
		case err := <-accepted:
			return err
		case <-time.After(time.Millisecond):
			if pathExists(file + ".end") {
				return errors.New("nobody came")
			}
		}
	}
}

// A program that reaches nothing has loopback for itself: it listens there and talks to itself.
func TestLoopback(t *testing.T) {
	required(t)
	p := newPlace(t)
	p.options.Network = GatewayOnly
	if got := p.confined("loopback"); got.code != 0 {
		t.Errorf("with gateway: %+v", got)
	}
	if got := p.program("/bin/sh", "-c", "kill -TERM $$"); got.code != -1 {
		t.Errorf("it ended by a signal: %+v", got)
	}
	if got := p.program("/bin/sh", "-c", "cat; exit 3"); got.code != 3 {
		t.Errorf("it ended with 3: %+v", got)
	}
}

// Nobody outside reaches a server of such a program, whatever address it listens on.
func TestServersAreReachedByNobody(t *testing.T) {
	required(t)
	p := newPlace(t)
	p.options.Network = GatewayOnly
	file := filepath.Join(p.workspace, "address")
	ended := make(chan outcome, 1)
	go func() { ended <- p.confined("serve", file) }()
	var address []byte
	for address == nil {
		select {
		case got := <-ended:
			t.Fatalf("it ended: %+v", got)
		case <-time.After(time.Millisecond):
			address, _ = os.ReadFile(file)
		}
	}
	_, port, _ := net.SplitHostPort(string(address))
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, 3*time.Second)
	if err == nil {
		t.Errorf("%s is reached", c.RemoteAddr())
	}
	p.write("workspace/address.end", "")
	if got := <-ended; got.code != 1 || got.text != "nobody came" {
		t.Errorf("%+v", got)
	}
}
