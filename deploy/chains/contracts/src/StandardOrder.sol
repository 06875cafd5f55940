// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice What a solver pays on the destination. Token 0 is the native token; addresses are padded with zeros on the left.
struct MandateOutput {
    bytes32 oracle;
    bytes32 settler;
    uint256 chainId;
    bytes32 token;
    uint256 amount;
    bytes32 recipient;
    bytes callbackData;
    bytes context;
}

/// @notice An order of the scheme oif-v1/StandardOrder. Each input is a token, 0 for the native one, and an amount.
struct StandardOrder {
    address user;
    uint256 nonce;
    uint256 originChainId;
    uint32 expires;
    uint32 fillDeadline;
    address inputOracle;
    uint256[2][] inputs;
    MandateOutput[] outputs;
}

error WrongChain(uint256 expected, uint256 actual);
error HasDirtyBits();
error CallOutOfRange();
error ContextOutOfRange();
error NotImplemented();

/// @dev Reverts where a word has bits above an address.
function toAddress(uint256 word) pure returns (address) {
    if (word >> 160 != 0) revert HasDirtyBits();
    return address(uint160(word));
}

/// @dev The bits above an address are ignored.
function lowAddress(bytes32 word) pure returns (address) {
    return address(uint160(uint256(word)));
}

function toWord(address account) pure returns (bytes32) {
    return bytes32(uint256(uint160(account)));
}

/// @notice The hash by which an output settler knows an output.
function outputHash(MandateOutput calldata output) pure returns (bytes32) {
    return keccak256(abi.encodePacked(output.oracle, output.settler, output.chainId, packedPayment(output)));
}

/// @notice The hash that an oracle attests: a solver has paid an order's output at a time.
function fillHash(bytes32 orderId, bytes32 solver, uint32 timestamp, MandateOutput calldata output)
    pure
    returns (bytes32)
{
    return keccak256(abi.encodePacked(solver, orderId, timestamp, packedPayment(output)));
}

/// @dev The members that both hashes end with; the lengths keep callback data and context apart.
function packedPayment(MandateOutput calldata output) pure returns (bytes memory) {
    if (output.callbackData.length > type(uint16).max) revert CallOutOfRange();
    if (output.context.length > type(uint16).max) revert ContextOutOfRange();
    return abi.encodePacked(
        output.token,
        output.amount,
        output.recipient,
        uint16(output.callbackData.length),
        output.callbackData,
        uint16(output.context.length),
        output.context
    );
}
