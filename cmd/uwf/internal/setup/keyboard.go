package setup

import "io"

// device is what the library needs of a terminal that it reads keys from.
type device interface {
	io.ReadWriteCloser
	Fd() uintptr
}

// keyboard reads a terminal's keys for one form after the other, as long as the process lives.
// The library would read the terminal itself, and its reader of a form that has ended takes now
// and then a key that was meant for the next one.
type keyboard struct {
	device
	keys chan []byte // closed at the end of the input
}

func newKeyboard(d device) *keyboard {
	k := &keyboard{device: d, keys: make(chan []byte)}
	go func() {
		defer close(k.keys)
		for {
			b := make([]byte, 256)
			n, err := d.Read(b)
			if n > 0 {
				k.keys <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return k
}

// forForm is the keyboard of one form, until it is done.
func (k *keyboard) forForm() (in *formKeys, done func()) {
	in = &formKeys{keyboard: k, done: make(chan struct{})}
	return in, func() { close(in.done) }
}

// formKeys are the keys that one form is given.
type formKeys struct {
	*keyboard
	done chan struct{}
	rest []byte
}

// Read implements io.Reader. It ends with the form.
func (f *formKeys) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		select {
		case <-f.done:
			return 0, io.EOF
		case keys, more := <-f.keys:
			if !more {
				return 0, io.EOF
			}
			f.rest = keys
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
