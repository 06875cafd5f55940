package transfer

import "math/big"

// Permit2Address is the canonical address of Uniswap's Permit2, the only one that the settlers know. Chains on which it has another, such as
// zkSync, have no signing by Permit2.
const Permit2Address = "0x000000000022D473030F116dDEE9F6B43aC78BA3"

// The types of a Permit2 signature for an order. The witness has had the user since oif-contracts pull request 168: without it, whoever sees a
// signature could open an order for the same tokens with another user, who is refunded.
var (
	mandateOutputType = newStructType("MandateOutput(bytes32 oracle,bytes32 settler,uint256 chainId,bytes32 token,uint256 amount,bytes32 recipient," +
		"bytes callbackData,bytes context)")
	permit2WitnessType   = newStructType("Permit2Witness(address user,uint32 expires,address inputOracle,MandateOutput[] outputs)", mandateOutputType)
	tokenPermissionsType = newStructType("TokenPermissions(address token,uint256 amount)")
	permitBatchType      = newStructType("PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,"+
		"Permit2Witness witness)", permit2WitnessType, tokenPermissionsType)
)

// Permit2Domain is the domain of Permit2 on a chain. It has no version.
func Permit2Domain(chain uint64) SigningDomain {
	return SigningDomain{Name: "Permit2", ChainID: chain, Contract: Permit2Address}
}

// Permit2Permit is what the order's user signs so that openFor takes the input through Permit2.
func (o *Order) Permit2Permit() (*TypedData, error) {
	return newTypedData(Permit2Domain(o.OriginChainID), permitBatchType, func(permit *structEncoder) {
		permit.list("permitted", tokenPermissionsType, func(permitted *structEncoder) {
			permitted.address("token", o.Input.Token)
			permitted.uint256("amount", o.Input.Amount)
		})
		permit.address("spender", o.InputSettler)
		permit.uint256("nonce", o.Nonce)
		permit.uint("deadline", uint64(o.FillDeadline))
		permit.structure("witness", permit2WitnessType, o.encodeWitness)
	})
}

func (o *Order) encodeWitness(witness *structEncoder) {
	witness.address("user", o.User)
	witness.number("expires", uint64(o.Expires))
	witness.address("inputOracle", o.InputOracle)
	witness.list("outputs", mandateOutputType, func(output *structEncoder) {
		output.bytes32("oracle", o.Output.Oracle)
		output.bytes32("settler", o.Output.Settler)
		output.uint("chainId", o.Output.ChainID)
		output.bytes32("token", o.Output.Token)
		output.uint256("amount", o.Output.Amount)
		output.bytes32("recipient", o.Output.Recipient)
		output.noBytes("callbackData")
		output.noBytes("context")
	})
}

var (
	permit2NonceBitmap     = selector("nonceBitmap(address,uint256)")
	permit2InvalidateNonce = selector("invalidateUnorderedNonces(uint256,uint256)")
)

// permit2Nonce returns the word of Permit2's bitmap that an order's nonce is in, and its bit.
func permit2Nonce(nonce *big.Int) (place, mask *big.Int) {
	return new(big.Int).Rsh(nonce, 8), new(big.Int).Lsh(big.NewInt(1), uint(nonce.Uint64()&0xff))
}

// NonceBitmapCall returns the calldata that asks Permit2 for the word of its bitmap which has the order's nonce.
func (o *Order) NonceBitmapCall() ([]byte, error) {
	place, _ := permit2Nonce(o.Nonce)
	data, err := appendAddresses(permit2NonceBitmap[:], o.User)
	if err != nil {
		return nil, err
	}
	return appendBig(data, place)
}

// NonceUsed reports whether a word of Permit2's bitmap says that the order's nonce was used or given up.
func (o *Order) NonceUsed(bitmap *big.Int) bool {
	_, mask := permit2Nonce(o.Nonce)
	return new(big.Int).And(bitmap, mask).Sign() != 0
}

// invalidateNonce is the call by which the order's user makes every Permit2 signature with its nonce worthless.
func (o *Order) invalidateNonce() (Call, error) {
	place, mask := permit2Nonce(o.Nonce)
	data, err := appendBig(permit2InvalidateNonce[:], place)
	if err != nil {
		return Call{}, err
	}
	data, err = appendBig(data, mask)
	return Call{To: Permit2Address, Value: new(big.Int), Data: data}, err
}

var permitType = newStructType("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)")

// permitOf is what the owner of an EIP-2612 token signs so that anybody can set the allowance that the intent needs.
func permitOf(domain SigningDomain, a Allowance, nonce *big.Int, deadline int64) (*TypedData, error) {
	return newTypedData(domain, permitType, func(permit *structEncoder) {
		permit.address("owner", a.Owner)
		permit.address("spender", a.Spender)
		permit.uint256("value", a.Amount)
		permit.uint256("nonce", nonce)
		permit.uint256("deadline", big.NewInt(deadline))
	})
}

var permitNonces = selector("nonces(address)")

// NoncesCall returns the calldata that asks an EIP-2612 token for an owner's nonce, which returns a uint256.
func NoncesCall(owner string) ([]byte, error) {
	return appendAddresses(permitNonces[:], owner)
}
