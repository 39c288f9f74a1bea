package node

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/cespare/xxhash/v2"
)

type vector struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
	CBORHex string          `json:"cborHex"`
	Hash    Hash            `json:"hash"`
}

// vectors are the content addresses that both systems agree on.
func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/cas.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		XXH64 []struct {
			Input, XXH64 string
			Base32       Hash
		} `json:"xxh64"`
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.XXH64) == 0 || len(f.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, x := range f.XXH64 {
		if got := encodeBase32(xxhash.Sum64String(x.Input)); got != x.Base32 {
			t.Errorf("base32(XXH64(%q)) = %s, want %s", x.Input, got, x.Base32)
		}
	}
	return f.Vectors
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			p, err := ParseJSON(v.Payload)
			if err != nil {
				t.Fatal(err)
			}
			var got Hash
			if v.Type == "SELF" {
				got, err = SelfHash(p)
			} else {
				got, err = HashOf(Hash(v.Type), p)
			}
			if err != nil || got != v.Hash {
				t.Errorf("hash = %s, %v; want %s", got, err, v.Hash)
			}
			if v.CBORHex == "" {
				return
			}
			b, err := EncodeCBOR(p)
			if err != nil || hex.EncodeToString(b) != v.CBORHex {
				t.Errorf("CBOR = %x, %v; want %s", b, err, v.CBORHex)
			}
		})
	}
}
