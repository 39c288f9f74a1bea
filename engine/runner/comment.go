package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/gitcas"
)

// sticky is the one comment of a thread. Its id travels from job to job, in the
// dispatch and in the thread's entry; where it got lost the comment is found by the
// marker that it begins with. Two jobs that make one at the same time both list the
// comments afterwards, and keep the one of the lowest id.
type sticky struct {
	j      *job
	thread gitcas.ThreadID
	number int   // of the issue or pull request; 0: there is none
	id     int64 // 0: not known
	// fresh: this very job started the thread, so that there is no comment yet.
	fresh bool
	off   bool // not wanted, or not allowed
}

// write makes the comment say body.
func (s *sticky) write(ctx context.Context, body string) error {
	if s.off || s.number == 0 {
		return nil
	}
	body, err := s.j.clean(body)
	if err != nil {
		return err
	}
	if s.id == 0 && !s.fresh {
		if _, err := s.find(ctx, ""); err != nil {
			return err
		}
	}
	if s.id != 0 {
		err := s.j.Forge.UpdateComment(ctx, s.id, body)
		if !errors.Is(err, forge.ErrNotFound) {
			s.j.hook(err, "comment-updated")
			return s.judged(err)
		}
		s.id = 0 // somebody deleted it
	}
	return s.judged(s.create(ctx, body))
}

// judged turns comments off where they can't be written at all: a locked issue, or a
// token without the right.
func (s *sticky) judged(err error) error {
	if errors.Is(err, forge.ErrForbidden) {
		s.off = true
	}
	return err
}

func (s *sticky) create(ctx context.Context, body string) error {
	made, err := s.j.Forge.CreateComment(ctx, s.number, body)
	if err != nil {
		if !unsure(err) {
			return err
		}
		// It may be there all the same.
		found, ferr := s.find(ctx, "")
		if ferr != nil || !found {
			return err
		}
		return nil
	}
	s.id, s.fresh = made.ID, false
	s.j.hook(nil, "comment-created")
	if _, err := s.find(ctx, made.Author); err != nil {
		return fmt.Errorf("look whether another job made the thread's comment too: %w", err)
	}
	if s.id != made.ID {
		return s.j.Forge.UpdateComment(ctx, s.id, body)
	}
	return nil
}

// find looks for the thread's comment by its marker and takes away those that two jobs
// made at the same time. author is who writes this job's comments; empty: not known,
// then bots go before people, who may have copied the marker.
func (s *sticky) find(ctx context.Context, author string) (bool, error) {
	list, err := s.j.Forge.Comments(ctx, s.number)
	if err != nil {
		return false, err
	}
	var ours []forge.Comment
	bot := false
	for _, c := range list {
		id, ok := report.FindMarker(c.Body)
		if !ok || id != string(s.thread) || author != "" && c.Author != author {
			continue
		}
		if isBot(c.Author) && !bot {
			ours, bot = nil, true
		}
		if isBot(c.Author) == bot {
			ours = append(ours, c)
		}
	}
	if len(ours) == 0 {
		return false, nil
	}
	slices.SortFunc(ours, func(a, b forge.Comment) int { return cmp.Compare(a.ID, b.ID) })
	s.id = ours[0].ID
	for _, c := range ours[1:] {
		if c.Author != ours[0].Author {
			continue
		}
		if err := s.j.Forge.DeleteComment(ctx, c.ID); err != nil {
			s.j.warn("a second comment of the thread could not be deleted", err)
		}
	}
	return true, nil
}

// reply answers somebody's command, once: a job that is run again finds its answer.
func (j *job) reply(ctx context.Context, number int, r report.Reply) error {
	if number == 0 || j.in.Command == CommandRun {
		return nil
	}
	r.Comment, r.Login = j.ev.CommentID, j.ev.CommentAuthor.Login
	body, err := j.clean(r.Markdown())
	if err != nil {
		return err
	}
	if j.Job.Attempt > 1 {
		list, err := j.Forge.Comments(ctx, number)
		if err != nil {
			return err
		}
		for _, c := range list {
			if strings.HasPrefix(c.Body, report.ReplyMarker(r.Comment)) {
				return j.Forge.UpdateComment(ctx, c.ID, body)
			}
		}
	}
	_, err = j.Forge.CreateComment(ctx, number, body)
	return err
}
