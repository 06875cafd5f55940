package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"intents.internal/core/identity/access"
	"intents.internal/core/intents"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// reportBatch answers POST /v2/batches/{id}/transaction: it adds the hash of a transaction that has paid for several of the batch's intents, those
// that are named or all of them.
func (s *Server) reportBatch(w http.ResponseWriter, r *http.Request) error {
	batch, transfers, err := s.requestedBatch(r)
	if err != nil {
		return err
	}
	if _, err := route.Query(r); err != nil {
		return err
	}
	request, err := route.Decode[struct {
		Hash      *string  `json:"hash"`
		Transfers []string `json:"transfers"`
	}](r)
	if err != nil {
		return err
	}
	hash, issue := parseHash(request.Hash)
	issues := issue
	places, issue := placesOf(transfers, request.Transfers)
	if issues = append(issues, issue...); len(issues) > 0 {
		return route.Invalid(issues...)
	}
	paid := make([]*transfer.Intent, len(places))
	for n, place := range places {
		paid[n] = transfers[place]
	}
	err = s.Intents.ReportBatch(r.Context(), access.OfKey(batch.AccountID), paid, hash)
	if refused, ok := errors.AsType[*intents.BatchError](err); ok {
		for n := range refused.Refused {
			refused.Refused[n].Index = places[refused.Refused[n].Index]
		}
	}
	if err != nil {
		return err
	}
	if transfers, err = s.Transfers.BatchTransfers(r.Context(), batch.AccountID, batch.ID); err != nil {
		return err
	}
	writeBatch(w, batch, transfers)
	return nil
}

// placesOf returns the places in a batch of the intents with these ids, ascending, or of all intents for nil.
func placesOf(transfers []*transfer.Intent, ids []string) (places []int, issues []wire.Issue) {
	if ids == nil {
		for place := range transfers {
			places = append(places, place)
		}
		return places, nil
	}
	if len(ids) == 0 || len(ids) > wire.MaxTransferBatch {
		return nil, []wire.Issue{{Path: "/transfers", Message: fmt.Sprintf("must have 1 to %d ids", wire.MaxTransferBatch)}}
	}
	for n, id := range ids {
		place := slices.IndexFunc(transfers, func(i *transfer.Intent) bool { return i.ID.String() == id })
		switch path := wire.BatchPath(n, ""); {
		case place < 0:
			issues = append(issues, wire.Issue{Path: path, Message: "must be the id of a transfer of this batch"})
		case slices.Contains(places, place):
			issues = append(issues, wire.Issue{Path: path, Message: "is given twice"})
		default:
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places, issues
}
