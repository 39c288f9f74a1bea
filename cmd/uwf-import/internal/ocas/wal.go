package ocas

import (
	"encoding/binary"
	"errors"
)

// Sizes in a WAL, in bytes: https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
const (
	walHeader   = 32
	frameHeader = 24
)

var errWAL = errors.New("what was committed last is damaged in its WAL, and an older state is read")

// checkWAL looks for commits that SQLite would pass over without a word: it takes the first
// frame of a WAL whose checksum is wrong for the end of it.
func checkWAL(b []byte) error {
	if len(b) < walHeader+frameHeader {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[3]&1 != 0 {
		order = binary.BigEndian
	}
	var sum [2]uint32
	matches := func(at []byte, parts ...[]byte) bool {
		for _, p := range parts {
			for ; len(p) >= 8; p = p[8:] {
				sum[0] += order.Uint32(p) + sum[1]
				sum[1] += order.Uint32(p[4:]) + sum[0]
			}
		}
		return sum == [2]uint32{binary.BigEndian.Uint32(at), binary.BigEndian.Uint32(at[4:])}
	}
	valid := matches(b[24:], b[:24])
	size := int(binary.BigEndian.Uint32(b[8:]))
	if size < 512 || size > 1<<16 {
		return errWAL
	}
	salts := string(b[16:24])
	for b = b[walHeader:]; len(b) >= frameHeader+size; b = b[frameHeader+size:] {
		ours, commits := string(b[8:16]) == salts, binary.BigEndian.Uint32(b[4:]) != 0
		if valid = valid && ours && matches(b[16:], b[:8], b[frameHeader:frameHeader+size]); !valid && ours && commits {
			return errWAL
		}
	}
	return nil
}
