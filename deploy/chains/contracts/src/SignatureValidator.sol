// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "./SmartAccount.sol";

/// @title The check of a smart account's signature in one eth_call without a recipient (ERC-1271, ERC-6492)
/// @notice It is never deployed: its constructor returns 32 bytes, the magic value of ERC-1271 for a signature that the account takes
/// and zero for any other. Nothing that the account or its factory does makes it revert, so an error of the call is the node's.
contract SignatureValidator {
    /// @param factory What deploys an account that has no code yet when it is called with factoryData; 0 for none.
    constructor(address account, bytes32 hash, bytes memory signature, address factory, bytes memory factoryData) {
        if (account.code.length == 0 && factory != address(0)) {
            // Whether the call succeeds does not matter: the account has code afterwards or it has not.
            assembly ("memory-safe") {
                pop(call(gas(), factory, 0, add(factoryData, 32), mload(factoryData), 0, 0))
            }
        }
        bytes32 magic = bytes32(IERC1271.isValidSignature.selector);
        bytes32 answer = 0;
        if (account.code.length > 0) {
            bytes memory question = abi.encodeCall(IERC1271.isValidSignature, (hash, signature));
            // Only 32 bytes of the answer are copied, since an account may return any number.
            assembly ("memory-safe") {
                if staticcall(gas(), account, add(question, 32), mload(question), 0, 32) {
                    if and(eq(returndatasize(), 32), eq(mload(0), magic)) { answer := magic }
                }
            }
        }
        assembly ("memory-safe") {
            mstore(0, answer)
            return(0, 32)
        }
    }
}
