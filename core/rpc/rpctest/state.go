package rpctest

import (
	"maps"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Selector names a function of a contract.
type Selector [4]byte

// The functions that following an intent calls.
var (
	OrderStatus = NewSelector("orderStatus(bytes32)")
	FillRecord  = NewSelector("getFillRecord(bytes32," + mandateOutput + ")")
	BalanceOf   = NewSelector("balanceOf(address)")
	Allowance   = NewSelector("allowance(address,address)")
	Approve     = NewSelector("approve(address,uint256)")
	Open        = NewSelector("open(" + standardOrder + ")")
)

// NewSelector is the selector of a signature such as balanceOf(address).
func NewSelector(signature string) Selector {
	return Selector(crypto.Keccak256([]byte(signature)))
}

// Call is a simulated transaction at a block.
type Call struct {
	From, To common.Address
	Value    *big.Int
	Data     []byte
	Block    uint64
	Time     time.Time
	// Before are the calls that eth_simulateV1 made before this one.
	Before []Call
}

// Function is what a contract returns. A Revert as its error reverts the call. It must not use the chain, which is locked.
type Function func(Call) ([]byte, error)

// Revert is the data of a reverted call.
type Revert []byte

func (Revert) Error() string { return "execution reverted" }

// Word is a number as a contract returns it.
func Word(n uint64) []byte { return common.BigToHash(new(big.Int).SetUint64(n)).Bytes() }

type function struct {
	to       common.Address
	selector Selector
}

// question is a call of a contract with all of its arguments.
type question struct {
	to   common.Address
	data string
}

// state is what the chain has besides its blocks; it has no history.
type state struct {
	code      map[common.Address][]byte
	balances  map[common.Address]*big.Int
	functions map[function]Function
	answers   map[question][]byte
	gas       func(Call) (uint64, error)
	// tags are the depths of safe and finalized; a tag that is not there is not supported.
	tags map[string]uint64
}

func newState() state {
	return state{
		code: map[common.Address][]byte{}, balances: map[common.Address]*big.Int{}, functions: map[function]Function{},
		answers: map[question][]byte{}, tags: map[string]uint64{},
		gas: func(Call) (uint64, error) { return 21_000, nil },
	}
}

func (s state) clone() state {
	return state{
		code: maps.Clone(s.code), balances: maps.Clone(s.balances), functions: maps.Clone(s.functions),
		answers: maps.Clone(s.answers), gas: s.gas, tags: maps.Clone(s.tags),
	}
}

// SetCode makes an address a contract.
func (c *Chain) SetCode(address common.Address, code []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code[address] = code
}

// SetBalance is what an address has of the native asset, nothing at first.
func (c *Chain) SetBalance(address common.Address, wei *big.Int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.balances[address] = wei
}

// SetFunction is what a contract's function returns. Calls of functions that are not set return nothing.
func (c *Chain) SetFunction(to common.Address, selector Selector, f Function) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions[function{to, selector}] = f
}

// SetAnswer is what a contract returns to exactly these data, whatever its function is.
func (c *Chain) SetAnswer(to common.Address, data, returned []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[question{to, string(data)}] = returned
}

// SetGas is the answer to eth_estimateGas, 21,000 at first.
func (c *Chain) SetGas(f func(Call) (uint64, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gas = f
}

// SetTag supports the tag safe or finalized, for the block that many below the head. No tag is supported at first.
func (c *Chain) SetTag(tag string, depth uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags[tag] = depth
}
