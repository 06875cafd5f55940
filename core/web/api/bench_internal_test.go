package api

import (
	"bytes"
	"math/big"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/registry"
	"intents.internal/core/transfer"
	"intents.internal/core/web/route"
	"intents.internal/pkg/caip"
)

// bridge is an intent that sends an ERC-20 token to another chain.
func bridge() *transfer.Intent {
	sepolia, base := caip.EIP155Chain(11155111), caip.EIP155Chain(84532)
	now := time.Date(2026, 11, 22, 1, 2, 3, 456e6, time.UTC)
	leg := func(chain caip.ChainID, account, token string, amount int64) transfer.Leg {
		return transfer.Leg{
			Account: caip.AccountID{Chain: chain, Address: account}, Token: caip.AccountID{Chain: chain, Address: token}, Amount: big.NewInt(amount),
		}
	}
	return &transfer.Intent{
		ID: uuid.MustParse("0199a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a69"), Type: transfer.Bridge, Status: transfer.Created,
		Source:      leg(sepolia, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", 1000000),
		Destination: leg(base, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", 990000),
		Settlement: transfer.Settlement{
			Scheme: registry.StandardOrder, Deployment: "lifi-v2", Expires: now.Add(5 * time.Hour).Truncate(time.Second),
			InputSettler: "0x5FbDB2315678afecb367f032d93F642f64180aa3", OutputSettler: "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512",
			InputOracle: "0x9fE46736679d2D9a65F0992F2272dE9f3c7fa6e0", OutputOracle: "0xCf7Ed3AccA5a467e9e704C703E8D87F634fB0Fc9",
		},
		Reference: "order 4711", Deadline: now.Add(time.Hour), CreatedAt: now, UpdatedAt: now,
	}
}

// BenchmarkRecord writes the record of a new intent, its order and transaction included.
func BenchmarkRecord(b *testing.B) {
	i := bridge()
	b.ReportAllocs()
	for b.Loop() {
		record, err := intents.NewRecord(i, transfer.Moment{Now: i.CreatedAt, BlockTime: registry.DefaultBlockTime})
		if err != nil {
			b.Fatal(err)
		}
		w := httptest.ResponseRecorder{Body: new(bytes.Buffer)}
		writeRecord(&w, 201, record)
	}
}

// BenchmarkPage writes a page of 100 intents, its entity tag included.
func BenchmarkPage(b *testing.B) {
	summary := bridge().Summary()
	b.ReportAllocs()
	for b.Loop() {
		body := route.NewBuffer()
		for row := range 100 {
			body.Bytes = jsonList.appendNext(body.Bytes, row, &summary)
		}
		newPage(body.Bytes)
		body.Release()
	}
}
