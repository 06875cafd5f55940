package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	blockTime = time.Second
	gasLimit  = 60_000_000
)

// chain is a go-ethereum node without peers. The simulated beacon produces its blocks, as in geth's developer mode. The package
// ethclient/simulated has the same parts, but restarts from the genesis block at each start.
type chain struct {
	id     uint32
	dir    string
	node   *node.Node
	eth    *eth.Ethereum
	beacon *catalyst.SimulatedBeacon
	client *ethclient.Client
	owner  *sender // deployer of the contracts and owner of the oracle
	faucet *sender
}

// newChain opens the chain in the directory data, or creates it, and serves its JSON-RPC at listen.
func newChain(id uint32, data, listen string, origins []string) (_ *chain, err error) {
	c := &chain{id: id, dir: filepath.Join(data, strconv.FormatUint(uint64(id), 10))}
	config, err := c.nodeConfig(listen, origins)
	if err != nil {
		return nil, err
	}
	if c.node, err = node.New(config); err != nil {
		return nil, fmt.Errorf("open the data directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.node.Close())
		}
	}()
	ethConfig, err := c.ethConfig()
	if err != nil {
		return nil, err
	}
	if c.eth, err = eth.New(c.node, ethConfig); err != nil {
		if _, differs := errors.AsType[*core.GenesisMismatchError](err); differs {
			return nil, fmt.Errorf("%s has a chain of another version; remove it to begin a new one: %w", c.dir, err)
		}
		return nil, fmt.Errorf("open the chain: %w", err)
	}
	c.client = ethclient.NewClient(c.node.Attach())
	c.owner, c.faucet = newSender(c, ownerKey), newSender(c, faucetKey)
	if err := c.registerAPIs(); err != nil {
		return nil, err
	}
	if c.beacon, err = catalyst.NewSimulatedBeacon(0, common.Address{}, c.eth); err != nil {
		return nil, fmt.Errorf("start the beacon: %w", err)
	}
	if err := c.node.Start(); err != nil {
		return nil, fmt.Errorf("start the node: %w", err)
	}
	return c, nil
}

func (c *chain) nodeConfig(listen string, origins []string) (*node.Config, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	if host == "" { // geth would serve no HTTP
		return nil, fmt.Errorf("-listen: %q has no host; 0.0.0.0 is every address", listen)
	}
	config := node.DefaultConfig
	config.Name = "node"
	config.DataDir = c.dir
	config.P2P = p2p.Config{NoDiscovery: true}
	config.HTTPHost, config.HTTPCors = host, origins
	if config.HTTPPort, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("-listen: port %q is no number", port)
	}
	config.HTTPModules = []string{"eth", "net", "web3", "personal", "faucet"}
	return &config, nil
}

// ethConfig stores the state of every block, so that a killed process loses only the newest block, and uses small caches.
func (c *chain) ethConfig() (*ethconfig.Config, error) {
	genesis, err := c.genesis()
	if err != nil {
		return nil, err
	}
	config := ethconfig.Defaults
	config.Genesis = genesis
	config.SyncMode = ethconfig.FullSync
	config.NoPruning, config.StateScheme = true, rawdb.HashScheme
	config.SnapshotCache = 0 // after a crash, a snapshot rewinds the chain
	config.DatabaseCache, config.TrieCleanCache, config.TrieDirtyCache = 16, 16, 16
	config.TransactionHistory, config.LogNoHistory = 0, true
	config.TxPool.NoLocals = true
	config.Miner.GasCeil, config.Miner.GasPrice = gasLimit, big.NewInt(1)
	return &config, nil
}

// genesis funds the development accounts and has Permit2. Its extra data is a hash of the deployment, so that a chain with the deployment of
// another version is not continued. It omits the contracts of EIP-2935 and EIP-4788: they write to the state in each block, which
// would be 0.5 GB a day.
func (c *chain) genesis() (*core.Genesis, error) {
	hash, err := deploymentHash(c.id)
	if err != nil {
		return nil, err
	}
	code, err := permit2Code()
	if err != nil {
		return nil, err
	}
	chainConfig := *params.AllDevChainProtocolChanges
	chainConfig.ChainID = new(big.Int).SetUint64(uint64(c.id))
	chainConfig.BogotaTime = nil // not final yet
	alloc := core.SystemContractAllocs()
	delete(alloc, params.HistoryStorageAddress)
	delete(alloc, params.BeaconRootsAddress)
	alloc[permit2] = types.Account{Code: code, Balance: new(big.Int)}
	for _, account := range developmentAccounts() {
		alloc[account] = types.Account{Balance: units(10_000, 18)}
	}
	for _, account := range []common.Address{address(ownerKey), address(faucetKey), address(solverKey)} {
		alloc[account] = types.Account{Balance: units(1_000_000_000, 18)}
	}
	return &core.Genesis{Config: &chainConfig, GasLimit: gasLimit, ExtraData: hash[:], Alloc: alloc}, nil
}

func (c *chain) registerAPIs() error {
	wallet, err := newWallet(c)
	if err != nil {
		return err
	}
	filterSystem := filters.NewFilterSystem(c.eth.APIBackend, filters.Config{})
	c.node.RegisterAPIs([]rpc.API{
		{Namespace: "eth", Service: filters.NewFilterAPI(filterSystem)},
		{Namespace: "eth", Service: wallet}, // replaces methods of the same name
		{Namespace: "personal", Service: &personalAPI{wallet}},
		{Namespace: "faucet", Service: &faucetAPI{c}},
	})
	return nil
}

// produceBlocks produces one block per second until ctx ends. Each is on disk before the next one: a killed process loses at most
// the newest block of a chain.
func (c *chain) produceBlocks(ctx context.Context) error {
	tick := time.NewTicker(blockTime)
	defer tick.Stop()
	for {
		head := c.eth.BlockChain().CurrentBlock().Hash()
		if c.beacon.Commit() == head { // it logs the reason as a warning and does not return it
			return fmt.Errorf("make a block of chain %d: the head stayed %s", c.id, head)
		}
		if err := c.eth.ChainDb().SyncKeyValue(); err != nil {
			return fmt.Errorf("write chain %d to disk: %w", c.id, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *chain) url() string { return c.node.HTTPEndpoint() }

// name is the chain's CAIP-2 id.
func (c *chain) name() string { return fmt.Sprintf("eip155:%d", c.id) }

func (c *chain) close() error {
	c.client.Close()
	return errors.Join(c.beacon.Stop(), c.node.Close())
}

// receipt waits until a transaction is in a block.
func (c *chain) receipt(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	tick := time.NewTicker(blockTime / 20)
	defer tick.Stop()
	for {
		receipt, err := c.client.TransactionReceipt(ctx, hash)
		if !errors.Is(err, ethereum.NotFound) {
			return receipt, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// units is an amount of a currency in its smallest unit.
func units(amount int64, decimals uint8) *big.Int {
	power := new(big.Int).Exp(big.NewInt(10), new(big.Int).SetUint64(uint64(decimals)), nil)
	return power.Mul(power, big.NewInt(amount))
}
