package transfer

import "github.com/ethereum/go-ethereum/accounts/abi"

// Encode sets Encoded.
func (o *Order) Encode() error { return o.encode() }

// ABI is the encoding of go-ethereum, which reads the fields from the type string.
func (o *Order) ABI() ([]byte, error) {
	return arguments(abi.ArgumentMarshaling{Name: "order", Type: "tuple", Components: components(orderDataType)}).Pack(*o)
}
