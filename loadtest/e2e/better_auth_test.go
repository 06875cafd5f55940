package e2e_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/loadtest/anvil"
)

// The session routes speak better-auth's protocol: its published client, with the plugins for API keys and wallets, does
// with them what its documentation says, and shows every refusal with its code.
func TestBetterAuthClient(t *testing.T) {
	t.Parallel()
	project := newNodeProject(t)
	for script, steps := range map[string]string{
		"better-auth.mjs": "signsUpInAndOut\nmakesAndChangesKeys\nrotatesKeys\nendsSessions\nchangesPassword\nresetsPassword\nchangesAddress\nleaves\n",
		"refusals.mjs":    "ofStrangers\nofSignUpAndIn\nofGuesses\nofOthersKeys\nofBadRequests\nofTooManyKeys\n",
		"siwe.mjs":        "signsIn\nisRefused\nlinksAndUnlinks\n",
		"members.mjs":     "sharesAnAccount\nkeepsTheirOwn\n",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			own := *project
			own.env = append(slices.Clip(own.env), "BASE_URL="+checkedGateway(t), "PUBLIC_URL="+running.Env().GatewayURL, "MAILBOX_URL="+serveMailbox(t))
			if diff := cmp.Diff(steps, own.run(t, nil, "node", script)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// A smart account signs in as viem has it sign, before it is deployed (ERC-6492) and after (ERC-1271), and is of its chain alone.
func TestBetterAuthClient_SmartAccount(t *testing.T) {
	t.Parallel()
	project := newNodeProject(t)
	chain := newChain(t, 31337, "depth")
	service := newChainStack(t, chain)
	factory := chain.Deploy(t, chain.owner(), anvil.Compiled(t, "SmartAccountFactory"))
	project.env = append(slices.Clip(project.env), "BASE_URL="+service.Env().GatewayURL, "PUBLIC_URL="+service.Env().GatewayURL,
		"RPC_URL="+chain.URL, "FACTORY="+factory.Address.Hex(), "SENDER="+chain.owner().Hex())
	if diff := cmp.Diff("signsInUndeployed\nsignsInDeployed\nisRefused\n", project.run(t, nil, "node", "smart-account.mjs")); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// checkedGateway is an address that passes everything on to the first gateway and holds each answer to openapi.json.
func checkedGateway(t *testing.T) string {
	t.Helper()
	gateway, err := url.Parse(running.Env().GatewayURL)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(gateway) },
		Transport: checked{t},
	})
	t.Cleanup(server.Close)
	return server.URL
}
