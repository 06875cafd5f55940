package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"intents.internal/core/registry"
	"intents.internal/core/rooms"
	"intents.internal/core/rpc"
)

// tokenFinding is what one provider has answered about one token.
type tokenFinding struct {
	token registry.Token
	// host is empty where the chain has no provider.
	host     string
	problems []string
}

// checkTokens runs `core tokens check`: a line for each provider and token that has data for signing. With a file it checks the tokens of that list
// and stores nothing.
func checkTokens(ctx context.Context, file ...string) error {
	return withProviders(ctx, func(_ *rooms.Rooms, current *registry.Snapshot, client *rpc.Client) error {
		tokens, unread := current.Tokens, error(nil)
		if len(file) > 0 {
			text, err := readList(file[0])
			if err != nil {
				return err
			}
			list, err := registry.ReadTokenList(bytes.NewReader(text), registered(current))
			if err != nil {
				return err
			}
			printLeftOut(list)
			tokens, unread = list.Tokens, unusableRows(len(list.Refused))
		}
		findings := checkAllTokens(ctx, client, registry.NewSnapshot(current.Version, slices.Clone(current.Chains), signedFor(tokens)))
		faulty := 0
		for i := range findings {
			if findings[i].host == "" && len(file) > 0 {
				findings[i].problems = []string{"no providers, so it is not checked"}
			}
			if len(findings[i].problems) > 0 {
				faulty++
			}
		}
		if err := printTokenFindings(os.Stdout, findings); err != nil {
			return err
		}
		return errors.Join(unread, faultyLines(faulty, len(findings)))
	})
}

// signedFor are those of some tokens that have data for signing.
func signedFor(tokens []registry.Token) (signed []registry.Token) {
	for _, t := range tokens {
		if t.ERC3009 != nil || t.EIP2612 != nil {
			signed = append(signed, t)
		}
	}
	return signed
}

// checkAllTokens asks all providers of the tokens' chains concurrently.
func checkAllTokens(ctx context.Context, client *rpc.Client, tokens *registry.Snapshot) []tokenFinding {
	var parts []*[]tokenFinding // in the order of chains, and of a chain's providers
	var asking sync.WaitGroup
	turns := make(chan struct{}, checksAtOnce)
	for _, c := range tokens.Chains {
		signed := tokens.TokensOn(c.ID)
		if len(signed) == 0 {
			continue
		}
		providers, ok := client.Chain(c.ID)
		if !ok {
			part := make([]tokenFinding, len(signed))
			for i, t := range signed {
				part[i].token = t
			}
			parts = append(parts, &part)
			continue
		}
		for _, p := range providers.All() {
			part := &[]tokenFinding{}
			parts = append(parts, part)
			asking.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				*part = checkTokensOn(ctx, p, c, signed)
			})
		}
	}
	asking.Wait()
	var findings []tokenFinding
	for _, part := range parts {
		findings = append(findings, *part...)
	}
	return findings
}

// checkTokensOn asks one provider of a chain about tokens. The first input settler of the chain asks the tokens, as it will for an order, or an
// account that owns nothing where there is none.
func checkTokensOn(ctx context.Context, p *rpc.Provider, c registry.Chain, tokens []registry.Token) []tokenFinding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	findings := make([]tokenFinding, len(tokens))
	for i, t := range tokens {
		findings[i] = tokenFinding{token: t, host: p.Host()}
	}
	failed := func(err error) []tokenFinding {
		for i := range findings {
			findings[i].problems = []string{strings.ReplaceAll(err.Error(), p.Host()+": ", "")}
		}
		return findings
	}
	if err := ask(ctx, p, rpc.ChainID()); err != nil {
		return failed(err)
	}
	nobody, err := newProbeKey()
	if err != nil {
		return failed(err)
	}
	payee := nobody.address().Hex()
	if len(c.Settlements) > 0 {
		payee = c.Settlements[0].InputSettler
	}
	probes, err := askTokens(ctx, p, tokens, payee)
	if err != nil {
		return failed(err)
	}
	for i, probe := range probes {
		for _, fault := range probe.faults() {
			findings[i].problems = append(findings[i].problems, strings.ReplaceAll(fault, p.Host()+": ", ""))
		}
	}
	return findings
}

func printTokenFindings(to io.Writer, findings []tokenFinding) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "chain\ttoken\taddress\terc3009\teip2612\thost\tproblem")
	for _, f := range findings {
		authorization, permit := "-", "-"
		if e := f.token.ERC3009; e != nil {
			authorization = fmt.Sprintf("%q %q %s", e.Name, e.Version, e.Form)
		}
		if d := f.token.EIP2612; d != nil {
			permit = fmt.Sprintf("%q %q", d.Name, d.Version)
		}
		problem := cmp.Or(strings.Join(f.problems, "; "), "-")
		if f.host == "" {
			problem = cmp.Or(strings.Join(f.problems, "; "), "no providers: not checked")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			f.token.ID.Chain, f.token.Symbol, f.token.ID.Address, authorization, permit, cmp.Or(f.host, "-"), problem)
	}
	return table.Flush()
}
