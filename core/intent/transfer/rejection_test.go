package transfer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/intent/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// A rejection names the member of the request that has to change, for forms that show it there.
func TestNew_RejectionPath(t *testing.T) {
	t.Parallel()
	unknown := caip.EIP155Chain(424242)
	zero := "0x0000000000000000000000000000000000000000"
	ok := wire.TransferRequest{Source: side(sepolia, alice, usdc, "1"), Destination: side(sepolia, bob, weth, "1")}
	for name, c := range map[string]struct {
		change func(*wire.TransferRequest)
		want   string
	}{
		"source chain":            {func(r *wire.TransferRequest) { r.Source = side(unknown, alice, usdc, "1") }, "/source/account"},
		"source token's chain":    {func(r *wire.TransferRequest) { r.Source.Token.Chain = unknown }, "/source/token"},
		"destination chain":       {func(r *wire.TransferRequest) { r.Destination = side(unknown, bob, weth, "1") }, "/destination/account"},
		"destination token chain": {func(r *wire.TransferRequest) { r.Destination.Token.Chain = unknown }, "/destination/token"},
		"source mismatch":         {func(r *wire.TransferRequest) { r.Source.Token.Chain = amoy }, "/source/token"},
		"destination mismatch":    {func(r *wire.TransferRequest) { r.Destination.Token.Chain = amoy }, "/destination/token"},
		"source token":            {func(r *wire.TransferRequest) { r.Source.Token.Address = bob }, "/source/token"},
		"destination token":       {func(r *wire.TransferRequest) { r.Destination.Token.Address = alice }, "/destination/token"},
		"source amount":           {func(r *wire.TransferRequest) { r.Source.Amount = "0" }, "/source/amount"},
		"destination amount":      {func(r *wire.TransferRequest) { r.Destination.Amount = "0" }, "/destination/amount"},
		"no destination amount":   {func(r *wire.TransferRequest) { r.Destination.Amount = "" }, "/destination/amount"},
		"another amount":          {func(r *wire.TransferRequest) { r.Destination = side(sepolia, bob, usdc, "2") }, "/destination/amount"},
		"zero recipient":          {func(r *wire.TransferRequest) { r.Destination.Account.Address = zero }, "/destination/account"},
		"token as the recipient":  {func(r *wire.TransferRequest) { r.Destination.Account.Address = weth }, "/destination/account"},
		"zero sender":             {func(r *wire.TransferRequest) { r.Source.Account.Address = zero }, "/source/account"},
		"to itself":               {func(r *wire.TransferRequest) { r.Destination = side(sepolia, alice, "", "") }, "/destination/account"},
		"deadline":                {func(r *wire.TransferRequest) { r.Deadline = time.Unix(0, 0) }, "/deadline"},
		"no settler":              {func(r *wire.TransferRequest) { r.Destination = side(amoy, bob, usdc, "1") }, ""},
	} {
		request := ok
		c.change(&request)
		_, err := transfer.New(id, transfer.Caller{Environment: network.Test}, request, fixture())
		var rejection *transfer.Rejection
		if !errors.As(err, &rejection) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, rejection.Path); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, rejection, diff)
		}
	}
}
