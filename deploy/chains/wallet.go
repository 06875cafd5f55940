package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

// walletAPI has the methods that the JSON-RPC adds to geth's own for the unlocked development accounts.
type walletAPI struct {
	chain *chain
	keys  *keystore.KeyStore
	geth  *rpc.Client // geth's own methods, also those that this API replaces
}

// newWallet unlocks the development accounts. The keys are public, so the key store uses a cheap scrypt.
func newWallet(c *chain) (*walletAPI, error) {
	keys := keystore.NewKeyStore(c.node.KeyStoreDir(), 2, 1)
	for i, key := range developmentKeys {
		if _, err := keys.ImportECDSA(key, ""); err != nil && !errors.Is(err, keystore.ErrAccountAlreadyExists) {
			return nil, fmt.Errorf("import development account %d: %w", i, err)
		}
		if err := keys.Unlock(accounts.Account{Address: address(key)}, ""); err != nil {
			return nil, fmt.Errorf("unlock development account %d: %w", i, err)
		}
	}
	c.node.AccountManager().AddBackend(keys)
	server := rpc.NewServer()
	for _, api := range c.eth.APIs() {
		if err := server.RegisterName(api.Namespace, api.Service); err != nil {
			return nil, fmt.Errorf("register geth's own methods: %w", err)
		}
	}
	return &walletAPI{chain: c, keys: keys, geth: rpc.DialInProc(server)}, nil
}

// SendTransaction is eth_sendTransaction. Gas is estimated in the newest block, where an `open` right after its `approve` would revert,
// so a transaction without gas waits until its sender's earlier ones are in a block. It gets a quarter more than the estimate, because
// others' transactions may change the state before it is included.
func (w *walletAPI) SendTransaction(ctx context.Context, args map[string]json.RawMessage) (hash common.Hash, err error) {
	var from common.Address
	if args["from"] != nil && args["gas"] == nil && json.Unmarshal(args["from"], &from) == nil {
		if err := w.awaitMined(ctx, from); err != nil {
			return common.Hash{}, err
		}
		var gas hexutil.Uint64
		if err := w.geth.CallContext(ctx, &gas, "eth_estimateGas", args, "latest"); err != nil {
			return common.Hash{}, err
		}
		args["gas"] = json.RawMessage(strconv.Quote(hexutil.EncodeUint64(uint64(gas + gas/4))))
	}
	err = w.geth.CallContext(ctx, &hash, "eth_sendTransaction", args)
	return hash, err
}

// awaitMined returns when the pool has no transaction of an account, or after some blocks, because an underpriced transaction
// stays in the pool.
func (w *walletAPI) awaitMined(ctx context.Context, account common.Address) error {
	timeout := time.After(5 * blockTime)
	tick := time.NewTicker(blockTime / 20)
	defer tick.Stop()
	for {
		if pending, queued := w.chain.eth.TxPool().ContentFrom(account); len(pending)+len(queued) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return nil
		case <-tick.C:
		}
	}
}

// SignTypedData_v4 is eth_signTypedData_v4 (EIP-712). The data is an object, or JSON text as MetaMask accepts it.
func (w *walletAPI) SignTypedData_v4(account common.Address, data json.RawMessage) (hexutil.Bytes, error) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = json.RawMessage(text)
	}
	var typed apitypes.TypedData
	if err := json.Unmarshal(data, &typed); err != nil {
		return nil, fmt.Errorf("read the typed data: %w", err)
	}
	hash, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil {
		return nil, fmt.Errorf("hash the typed data: %w", err)
	}
	return w.sign(account, hash)
}

func (w *walletAPI) sign(account common.Address, hash []byte) (hexutil.Bytes, error) {
	signature, err := w.keys.SignHash(accounts.Account{Address: account}, hash)
	if err != nil {
		return nil, err
	}
	signature[64] += 27 // wallets use 27 or 28 as the recovery id
	return signature, nil
}

// personalAPI is the namespace personal, which geth does not have.
type personalAPI struct{ wallet *walletAPI }

// Sign is personal_sign (EIP-191), which is eth_sign with its parameters swapped.
func (p *personalAPI) Sign(message hexutil.Bytes, account common.Address) (hexutil.Bytes, error) {
	return p.wallet.sign(account, accounts.TextHash(message))
}
