package transfer

// Encode sets Encoded.
func (o *Order) Encode() error { return o.encode() }

// EIP712Type is the type string of the order data.
const EIP712Type = orderDataType
