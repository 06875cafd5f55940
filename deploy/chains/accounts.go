package main

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"sync"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// developmentKeys are the first ten accounts, m/44'/60'/0'/0/0 to 9, of the mnemonic that anvil and Hardhat use as well:
// "test test test test test test test test test test test junk".
var developmentKeys = [10]*ecdsa.PrivateKey{
	hexKey("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
	hexKey("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
	hexKey("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
	hexKey("7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
	hexKey("47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"),
	hexKey("8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"),
	hexKey("92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"),
	hexKey("4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"),
	hexKey("dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97"),
	hexKey("2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6"),
}

// The program's own accounts.
var (
	ownerKey  = phraseKey("local chains: owner")
	faucetKey = phraseKey("local chains: faucet")
	solverKey = phraseKey("local chains: solver")
)

func hexKey(text string) *ecdsa.PrivateKey {
	key, err := crypto.HexToECDSA(text)
	if err != nil {
		panic(err)
	}
	return key
}

// phraseKey derives a key from the hash of a phrase, so that it is the same on every machine.
func phraseKey(phrase string) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(phrase)))
	if err != nil {
		panic(err)
	}
	return key
}

func address(key *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(key.PublicKey) }

func developmentAccounts() (accounts []common.Address) {
	for _, key := range developmentKeys {
		accounts = append(accounts, address(key))
	}
	return accounts
}

// sender sends an account's transactions on one chain, one at a time, since each needs the next nonce.
type sender struct {
	chain   *chain
	key     *ecdsa.PrivateKey
	address common.Address
	signer  types.Signer

	sending sync.Mutex
	nonce   uint64 // next one; the pool counts a transaction with a delay
}

// call is the action of a transaction. Gas 0 means the estimated gas.
type call struct {
	to    *common.Address // nil deploys data
	value *big.Int
	data  []byte
	gas   uint64
}

func newSender(c *chain, key *ecdsa.PrivateKey) *sender {
	return &sender{chain: c, key: key, address: address(key), signer: types.LatestSignerForChainID(new(big.Int).SetUint64(uint64(c.id)))}
}

// send submits a transaction to the pool. If the process ends before the transaction is in a block, it is lost.
func (s *sender) send(ctx context.Context, call call) (common.Hash, error) {
	s.sending.Lock()
	defer s.sending.Unlock()
	gas := call.gas
	if gas == 0 {
		var err error
		message := ethereum.CallMsg{From: s.address, To: call.to, Value: call.value, Data: call.data}
		if gas, err = s.chain.client.EstimateGas(ctx, message); err != nil {
			return common.Hash{}, fmt.Errorf("estimate gas: %w", err)
		}
		gas += gas / 5 // the state may differ when it is mined
	}
	nonce, err := s.chain.client.PendingNonceAt(ctx, s.address)
	if err != nil {
		return common.Hash{}, fmt.Errorf("read the nonce of %s: %w", s.address, err)
	}
	nonce = max(nonce, s.nonce)
	tx, err := types.SignNewTx(s.key, s.signer, &types.DynamicFeeTx{
		ChainID: s.signer.ChainID(), Nonce: nonce, To: call.to, Value: call.value, Data: call.data, Gas: gas,
		GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
	})
	if err != nil {
		return common.Hash{}, fmt.Errorf("sign a transaction: %w", err)
	}
	if err := s.chain.client.SendTransaction(ctx, tx); err != nil {
		return common.Hash{}, fmt.Errorf("send a transaction: %w", err)
	}
	s.nonce = nonce + 1
	return tx.Hash(), nil
}
