package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkFiles makes the paths of the lists and of the RPC file absolute, and reports all files that cannot be read or are not
// JSON. Core checks their contents.
func (c *Config) checkFiles() error {
	var faults []error
	for _, file := range []struct {
		holds string
		path  *string
	}{{"chains", &c.ChainsFile}, {"tokens", &c.TokensFile}, {"RPC URLs", &c.RPCFile}} {
		if *file.path == "" {
			continue
		}
		text, err := os.ReadFile(*file.path)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("read the file of %s: %w", file.holds, err))
		case !json.Valid(text):
			faults = append(faults, fmt.Errorf("read the file of %s: %s is not JSON", file.holds, *file.path))
		}
		if *file.path, err = filepath.Abs(*file.path); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// writeChainList writes the list of the local chains to a file of the data directory, with the URLs that a wallet on this machine
// uses.
func (s *Stack) writeChainList(published string) error {
	text, err := os.ReadFile(published)
	if err != nil {
		return err
	}
	var list struct {
		Chains []map[string]any `json:"chains"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, row := range list.Chains {
		for _, local := range s.chains.chains {
			if row["chainId"] == "eip155:"+local.ID {
				row["rpcUrls"] = []string{local.RPCURL}
			}
		}
	}
	if text, err = json.Marshal(list); err != nil {
		return err
	}
	return writePrivate(s.path(chainListFile), append(text, '\n'))
}

// loadDatabase migrates the database and imports the chains and tokens.
func (s *Stack) loadDatabase(ctx context.Context) error {
	data := filepath.Join(s.config.Root, "deploy", "data")
	jobs := [][]string{
		{"migrate"},
		{"chains", "import", filepath.Join(data, "chains.json")},
		{"tokens", "import", filepath.Join(data, "tokens.json")},
	}
	if s.chains != nil {
		lists := filepath.Join(s.config.Root, "deploy", "chains", "lists")
		if err := s.writeChainList(filepath.Join(lists, "chains.json")); err != nil {
			return fmt.Errorf("write the list of the local chains: %w", err)
		}
		jobs = append(jobs,
			[]string{"chains", "import", s.path(chainListFile)},
			[]string{"tokens", "import", filepath.Join(lists, "tokens.json")})
	}
	if s.config.ChainsFile != "" {
		jobs = append(jobs, []string{"chains", "import", s.config.ChainsFile})
	}
	if s.config.TokensFile != "" {
		jobs = append(jobs, []string{"tokens", "import", s.config.TokensFile})
	}
	for _, args := range jobs {
		if err := s.cores[0].runOnce(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
