// Package jobcache keeps folders in the cache of GitHub's Actions, from one job to the next. What
// comes from there is taken for hostile. It never deletes or overwrites an entry, decides nothing
// about what is kept, and hands its token to nobody but the cache. It speaks version 2 of the
// service alone, which Gitea has not: there, and on other runners of one's own, what was prepared
// stays on the machine where the storage root does.
package jobcache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/removal"
	"github.com/united-workforce/uwf/internal/text"
)

// Cache is that of the job which this process is. It asks for nothing before it is used.
type Cache struct {
	url, token string
	client     *http.Client
}

// Open finds the cache in a job's environment: ACTIONS_RUNTIME_TOKEN with ACTIONS_RESULTS_URL; ok is
// false where there is none. Gitea has these two without a cache there, so they alone decide nothing:
// the cache is where ACTIONS_CACHE_SERVICE_V2 is true, and on all of GitHub's own servers. client nil
// is the default one.
func Open(environ []string, client *http.Client) (c *Cache, ok bool) {
	server := sandbox.Getenv(environ, "GITHUB_SERVER_URL")
	ok = server == "https://github.com" || strings.HasSuffix(server, ".ghe.com") || strings.EqualFold(sandbox.Getenv(environ, "ACTIONS_CACHE_SERVICE_V2"), "true")
	c = &Cache{sandbox.Getenv(environ, "ACTIONS_RESULTS_URL"), sandbox.Getenv(environ, "ACTIONS_RUNTIME_TOKEN"), cmp.Or(client, http.DefaultClient)}
	return c, ok && c.url != "" && c.token != ""
}

// maxTime bounds how long loading or saving takes.
const maxTime = 2 * time.Minute

// Load puts the folder that has exactly this key into another one, under the name that it had
// where it was saved; one of that name stays as it is, and that is an error. The folder must hold folders with the names
// parts. Where anything is wrong with it, nothing of it stays. It takes two minutes at most.
func (c *Cache) Load(ctx context.Context, key, into string, parts ...string) (found bool, err error) {
	defer func() { err = cleanError("load what was prepared from the cache of Actions", err) }()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	entry, err := c.askService(ctx, "GetCacheEntryDownloadURL", key, `,"restore_keys":[]`)
	if err != nil || entry["ok"] != true || entry["matched_key"] != key { // the service gives what begins alike, too
		return false, err
	}
	half, err := os.MkdirTemp(into, ".new-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, removal.Tree(context.WithoutCancel(ctx), half, 0)) }()
	err = c.sendRequest(ctx, http.MethodGet, fmt.Sprint(entry["signed_download_url"]), nil, http.NoBody, 0, func(data io.Reader) error {
		name, err := unpackFolder(io.LimitReader(data, maxPut), half, parts, limits{bytes: 8 << 30, entries: 2_000_000})
		if err == nil {
			err = os.Rename(half, filepath.Join(into, name))
		}
		return err
	})
	return err == nil, err
}

// Save keeps a folder under a key. Where the key exists already, that is no error, and what it
// stands for stays. It takes two minutes at most.
func (c *Cache) Save(ctx context.Context, key, from string) (err error) {
	defer func() { err = cleanError("save what was prepared in the cache of Actions", err) }()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	file, err := os.CreateTemp(filepath.Dir(from), ".new-")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = file.Close() })() // so that packing ends with ctx
	defer func() { _ = file.Close() }()                         // nobody reads it any more
	// It has no name, so that nothing is left whatever happens.
	if err := errors.Join(os.Remove(file.Name()), packFolder(file, from)); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil || size > maxPut {
		return errors.Join(err, fmt.Errorf("it has %d bytes, and %d are the most", size, int64(maxPut)))
	}
	entry, err := c.askService(ctx, "CreateCacheEntry", key, "")
	if err != nil || entry["code"] == "already_exists" {
		return err
	}
	blob := http.Header{"X-Ms-Blob-Type": {"BlockBlob"}, "X-Ms-Version": {"2020-10-02"}}
	// One request reads from the disk: Azure's own client dies where a server answers early.
	if err := c.sendRequest(ctx, http.MethodPut, fmt.Sprint(entry["signed_upload_url"]), blob, io.NewSectionReader(file, 0, size), size, func(io.Reader) error { return nil }); err != nil {
		return err
	}
	entry, err = c.askService(ctx, "FinalizeCacheEntryUpload", key, fmt.Sprintf(`,"size_bytes":%d`, size))
	if err == nil && entry["ok"] != true {
		err = errors.New("the service does not keep it")
	}
	return err
}

// maxPut is how much one request may put in Azure's storage: 5000 MiB.
const maxPut = 5000 << 20

// askService makes a call about an entry, with more members than its key and version. The version
// is what clients of one kind know their entries by.
func (c *Cache) askService(ctx context.Context, call, key, more string) (answer map[string]any, err error) {
	header := http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}}
	// Keys are words, which Go and JSON quote alike.
	body := fmt.Sprintf(`{"key":%q,"version":"%x"%s}`, key, sha256.Sum256([]byte("uwf image 1")), more)
	url := strings.TrimRight(c.url, "/") + "/twirp/github.actions.results.api.v1.CacheService/" + call
	read := func(data io.Reader) error { return json.NewDecoder(io.LimitReader(data, 32<<10)).Decode(&answer) }
	err = c.sendRequest(ctx, http.MethodPost, url, header, strings.NewReader(body), int64(len(body)), read)
	return answer, err
}

// sendRequest sends a request with a body of a size, and has the answer's body read, also
// where it says that there is such a key.
func (c *Cache) sendRequest(ctx context.Context, method, url string, header http.Header, body io.Reader, size int64, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	req.Header, req.ContentLength = header, size
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	if resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusConflict {
		return errors.New(resp.Status)
	}
	return read(resp.Body)
}

// signature is what addresses of data end in: who knows it may read or write the data.
var signature = lazyregexp.New(`\?[^\s"]*`)

// maxReason is how much is shown of what a service says.
const maxReason = 300

// cleanError says what was being done, and why it failed without what grants access.
func cleanError(doing string, err error) error {
	if err == nil {
		return nil
	}
	why := text.Cut(text.Line(signature.ReplaceAllString(err.Error(), "")), maxReason)
	return fmt.Errorf("%s: %s; the commands run in each job until that is mended", doing, why)
}
