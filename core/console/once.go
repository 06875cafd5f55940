package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"time"
)

// Creating a key is the one form whose second copy would do something else than the first. It bears a mark that is used
// up with the first, so a browser that sends it twice, or loads its answer again, makes nothing and is told so.

// markLifetime is how long a second copy is known for one.
const markLifetime = 7 * 24 * time.Hour

// newMark is a mark for one form.
func newMark() string { return rand.Text() }

var errSentTwice = problem{
	status: http.StatusConflict, Title: "Sent already", correctable: true,
	Text: "This form was sent already, and its key was made then; a key is shown only once. " +
		"If you did not see it, open it in the list below and rotate it: that shows a new one in its place.",
}

// useMark uses up the mark of a form, and returns errSentTwice the second time. A mark means nothing in another session.
func (c *console) useMark(r *http.Request, in who, f *form) error {
	mark := f.values["mark"]
	if len(mark) != len(newMark()) {
		return errUnknownField
	}
	hash := sha256.Sum256([]byte("console form " + in.session.ID.String() + " " + mark))
	first, err := c.Store.UseMark(r.Context(), hash, time.Now().Add(markLifetime))
	if err == nil && !first {
		return errSentTwice
	}
	return err
}
