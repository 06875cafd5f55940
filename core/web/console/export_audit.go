package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// auditColumns are the columns of the file.
var auditColumns = []string{"time", "last_time", "action", "what", "detail", "repeats", "key_id", "key_name", "by", "by_email", "ip_address", "browser"}

// exportAudit answers GET /console/audit.csv with the entries of the query's filters, newest first, as a file. Where there are more than fit, or
// than can be looked through, its last line says so.
func (c *console) exportAudit(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	query, err := f.auditQuery()
	if err != nil {
		return err
	}
	if !f.ok() {
		return c.listAudit(w, r, user, f)
	}
	file := newCSVFile(auditColumns)
	for range maxCSVRows / csvBatch {
		query.Limit = csvBatch
		views, next, err := c.auditPage(r, user, query)
		if err != nil {
			return err
		}
		for _, v := range views {
			file.add(v.cells()...)
		}
		if query.Before = next; next == uuid.Nil {
			break
		}
	}
	if query.Before != uuid.Nil {
		file.add("older entries are left out: choose an earlier date to have them")
	}
	file.serve(w, "audit-log.csv")
	return nil
}

// cells are the columns of an entry.
func (v *auditView) cells() []string {
	last, key, by := "", "", v.PersonName
	if v.LastAt != nil {
		last = v.LastAt.Format(time.RFC3339)
	}
	if v.KeyID != nil {
		key = v.KeyID.String()
	}
	if v.Actor.Operator {
		by = operatorChoice
	}
	return []string{
		v.OccurredAt.Format(time.RFC3339), last, string(v.Action), v.What, v.Detail, strconv.Itoa(v.Repeats), key, v.KeyName, by, v.PersonEmail,
		v.Actor.IPAddress, v.Actor.UserAgent,
	}
}
