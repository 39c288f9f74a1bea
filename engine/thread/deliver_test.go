package thread

import (
	"context"
	"errors"
)

// end steps the thread to its end, where it waits to be delivered.
func (f *fixture) end() {
	f.Helper()
	f.start()
	f.steps("r1")
	_, err := f.stepWith("r2", 1, StepRequest{Thread: testThread, Deliver: true})
	f.ok(err)
}

// undelivered is a job that can't deliver the thread.
func (f *fixture) undelivered(run string) {
	f.Helper()
	_, err := f.engine(run, 1).Deliver(f.Context(), DeliverRequest{Thread: testThread, Do: func(context.Context, Delivery) (Effects, error) {
		return Effects{}, errors.New("the forge is down")
	}})
	f.code(err, CodeFailed)
}
