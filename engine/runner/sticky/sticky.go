// Package sticky keeps one comment for each thread on an issue or a pull request. It
// decides nothing about the thread, and knows of the text only what it begins with.
package sticky

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/report"
)

// Comment is the one comment of a thread. Its id travels from job to job, in the
// dispatch and in the thread's entry; where it got lost the comment is found by the
// marker that it begins with. Two jobs that make one at the same time both list the
// comments afterwards, and keep the one of the lowest id.
type Comment struct {
	Forge  forge.Forge
	Thread string
	Number int   // of the issue or pull request; 0: there is none
	ID     int64 // 0: not known
	// seen: the comment with that id is the thread's, by its marker. An id comes from
	// the state branch and from inputs, which are not to lead to anybody else's words.
	seen bool
	// Fresh: this very job started the thread, so that there is no comment yet.
	Fresh bool
	Off   bool // not wanted, or not allowed
	// Clean takes secrets out of a text; Warn tells of what went wrong beside the
	// comment; Hook is called after each durable change, by name.
	Clean func(string) (string, error)
	Warn  func(what string, err error)
	Hook  func(point string)
	// text is what it says, as far as that is known.
	text string
}

// Write makes the comment say body.
func (c *Comment) Write(ctx context.Context, body string) error {
	if c.Off || c.Number == 0 {
		return nil
	}
	body, err := c.Clean(body)
	if err != nil {
		return err
	}
	if err := c.checkID(ctx); err != nil {
		return c.judgeError(err)
	}
	if c.ID == 0 && !c.Fresh {
		if _, err := c.findComment(ctx, ""); err != nil {
			return err
		}
	}
	if c.ID != 0 && strings.TrimSpace(c.text) == strings.TrimSpace(body) {
		return nil // it says so already
	}
	if c.ID != 0 {
		err := c.Forge.UpdateComment(ctx, c.ID, body)
		if !errors.Is(err, forge.ErrNotFound) {
			if err == nil {
				c.text = body
				c.Hook("comment-updated")
			}
			return c.judgeError(err)
		}
		c.ID, c.text = 0, "" // somebody deleted it
	}
	return c.judgeError(c.createComment(ctx, body))
}

// checkID forgets an id that is not that of the thread's comment.
func (c *Comment) checkID(ctx context.Context) error {
	if c.ID == 0 || c.seen {
		return nil
	}
	there, err := c.Forge.ReadComment(ctx, c.ID)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return err
	}
	id, ok := report.FindMarker(there.Body)
	if c.seen = err == nil && ok && id == c.Thread; !c.seen {
		c.ID = 0
		return nil
	}
	c.text = there.Body
	return nil
}

// judgeError turns comments off where they can't be written at all: an issue that is locked or
// gone, or a token without the right.
func (c *Comment) judgeError(err error) error {
	if errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrNotFound) {
		c.Off = true
	}
	return err
}

func (c *Comment) createComment(ctx context.Context, body string) error {
	c.Fresh = false // whatever comes of this, the next try looks for it
	made, err := c.Forge.CreateComment(ctx, c.Number, body)
	if err != nil {
		return err
	}
	c.ID, c.seen, c.text = made.ID, true, body
	c.Hook("comment-created")
	if _, err := c.findComment(ctx, made.Author); err != nil {
		return fmt.Errorf("look whether another job made the thread's comment too: %w", err)
	}
	if c.ID != made.ID {
		c.text = body
		return c.Forge.UpdateComment(ctx, c.ID, body)
	}
	return nil
}

// findComment looks for the thread's comment by its marker and takes away those that two jobs
// made at the same time. author is who writes this job's comments; empty: not known,
// then bots go before people, who may have copied the marker.
func (c *Comment) findComment(ctx context.Context, author string) (bool, error) {
	list, err := c.Forge.ListComments(ctx, c.Number)
	if err != nil {
		return false, err
	}
	var ours []forge.Comment
	bot := false
	for _, one := range list {
		id, ok := report.FindMarker(one.Body)
		if !ok || id != c.Thread || author != "" && one.Author != author {
			continue
		}
		if forge.IsBot(one.Author) && !bot {
			ours, bot = nil, true
		}
		if forge.IsBot(one.Author) == bot {
			ours = append(ours, one)
		}
	}
	if len(ours) == 0 {
		return false, nil
	}
	slices.SortFunc(ours, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	if c.ID != ours[0].ID {
		c.text = ours[0].Body
	}
	c.ID, c.seen = ours[0].ID, true
	for _, second := range ours[1:] {
		if second.Author != ours[0].Author {
			continue
		}
		if err := c.Forge.DeleteComment(ctx, second.ID); err != nil {
			c.Warn("a second comment of the thread could not be deleted", err)
		}
	}
	return true, nil
}
