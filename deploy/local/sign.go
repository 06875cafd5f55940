package main

import (
	"context"
	"fmt"

	"intents.internal/pkg/client"
)

// signIntent signs an intent in place of its user's wallet. The demonstration solver sends the transaction then.
func (s *sender) signIntent(ctx context.Context, intent *client.Transfer) error {
	signing := intent.Signing
	if intent.Status != client.StatusCreated || signing.TypedData == nil {
		return fmt.Errorf("the %s %s is %s: only an intent that is created, before its deadline, is signed", intent.Type, intent.ID, intent.Status)
	}
	node, err := s.node(ctx, signing.TypedData.Domain.ChainID)
	if err != nil {
		return err
	}
	if err := s.checkBalance(ctx, intent, node); err != nil {
		return err
	}
	user := address(intent.Source.Account)
	if signing.Allowance != nil {
		steps, err := node.grant(ctx, *signing.Allowance)
		if err != nil {
			return err
		}
		if _, err := s.sendSteps(ctx, node, steps, user, signing.TypedData.Domain.ChainID); err != nil {
			return err
		}
	}
	var signature string
	if err := node.call(ctx, &signature, "eth_signTypedData_v4", user, signing.TypedData); err != nil {
		return explain(err, node, user, "the typed data to the wallet")
	}
	_, err = s.once(ctx, func() (*client.Transfer, error) { return s.api.Transfers.SubmitSignature(ctx, intent.ID, signature) })
	if err != nil {
		return fmt.Errorf("give the signature to the service: %w", hint(err))
	}
	s.printf("signed    %s\n", *signing.Digest)
	if intent.Reference != nil && *intent.Reference == "relay-myself" { // the demonstration solver does not relay it
		s.printf("the service has the signature: send this transaction from any account and report its hash:\n")
		s.printf("\n  curl -s %s/v2/transfers/%s/relay -H 'x-api-key: %s'\n", s.env["GATEWAY_URL"], intent.ID, s.env["TEST_KEY"])
		return nil
	}
	s.printf("the service has the signature: the solver sends the transaction and pays its gas within seconds. Its events:\n")
	s.printf("\n  curl -s \"%s/v2/events?wait=25\" -H 'x-api-key: %s'\n", s.env["GATEWAY_URL"], s.env["TEST_KEY"])
	return nil
}
