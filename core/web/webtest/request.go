package webtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Accounts and tokens of the registry of pgtest.
const (
	Alice = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	Bob   = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

	AliceOnSepolia = "eip155:11155111:" + Alice
	BobOnSepolia   = "eip155:11155111:" + Bob
	BobOnBase      = "eip155:84532:" + Bob
	BobOnFar       = "eip155:99000000001:" + Bob
	BobOnArbitrum  = "eip155:421614:" + Bob
	AliceOnMainnet = "eip155:1:" + Alice
	BobOnMainnet   = "eip155:1:" + Bob

	SepoliaETH   = "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
	SepoliaUSDC  = "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238"
	SepoliaWETH  = "eip155:11155111:0xfFf9976782d46CC05630D1f6eBAb18b2324d6B14"
	BaseUSDC     = "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e"
	ArbitrumUSDC = "eip155:421614:0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d"
	FarUSDC      = "eip155:99000000001:0x0000000000000000000000000000000000420042"
	MainnetUSDC  = "eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
)

// Body writes a request; empty parts are left out. rest is what follows, such as `,"reference":"inv-42"`.
func Body(fromAccount, fromToken, amount, toAccount, toToken, toAmount, rest string) string {
	leg := func(parts ...string) string {
		var fields []string
		for i := 0; i < len(parts); i += 2 {
			if parts[i+1] != "" {
				fields = append(fields, fmt.Sprintf("%q:%q", parts[i], parts[i+1]))
			}
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	return fmt.Sprintf(`{"source":%s,"destination":%s%s}`,
		leg("account", fromAccount, "token", fromToken, "amount", amount),
		leg("account", toAccount, "token", toToken, "amount", toAmount), rest)
}

// Requests for an intent of each type.
var (
	TransferBody = Body(AliceOnSepolia, SepoliaUSDC, "5", BobOnSepolia, "", "", "")
	SwapBody     = Body(AliceOnSepolia, SepoliaUSDC, "5", BobOnSepolia, SepoliaWETH, "4", "")
	BridgeBody   = Body(AliceOnSepolia, SepoliaUSDC, "5", BobOnBase, BaseUSDC, "4", "")
)

// UsageRow is a row of a report; lastUsed is a time.
func UsageRow(keyID string, minute time.Time, accepted, limited, refused int, lastUsed string) string {
	return fmt.Sprintf(`{"keyId":%q,"minute":%q,"accepted":%d,"limited":%d,"refused":%d,"lastUsedAt":%q}`,
		keyID, minute.Format(time.RFC3339), accepted, limited, refused, lastUsed)
}

// UsageReport is a gateway's report with these rows.
func UsageReport(id string, rows ...string) string {
	return fmt.Sprintf(`{"reportId":%q,"keys":[%s]}`, id, strings.Join(rows, ","))
}

// MeasuredBy has the service count here.
func MeasuredBy(registry *prometheus.Registry) func(*Settings) {
	return func(c *Settings) { c.API.Metrics = registry }
}
