// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "./TestToken.sol";

/// @title How the settlers move tokens
abstract contract Payments {
    /// @notice Errors of OpenZeppelin's SafeERC20 and Address.
    error SafeERC20FailedOperation(address token);
    error InsufficientBalance(uint256 balance, uint256 needed);
    error FailedCall();

    /// @dev Moves tokens by the allowance that the caller has given this contract.
    function _collectToken(address token, address to, uint256 amount) internal {
        _callToken(token, abi.encodeCall(IERC20.transferFrom, (msg.sender, to, amount)));
    }

    function _payToken(address token, address to, uint256 amount) internal {
        _callToken(token, abi.encodeCall(IERC20.transfer, (to, amount)));
    }

    function _payNative(address to, uint256 amount) internal {
        if (address(this).balance < amount) revert InsufficientBalance(address(this).balance, amount);
        (bool ok, bytes memory result) = to.call{value: amount}("");
        if (ok) return;
        if (result.length == 0) revert FailedCall();
        _revertWith(result);
    }

    /// @dev A token must have code and return true or nothing. Its own reason is passed on where it reverts.
    function _callToken(address token, bytes memory data) private {
        (bool ok, bytes memory result) = token.call(data);
        if (!ok) _revertWith(result);
        bool accepted = result.length == 0 ? token.code.length > 0 : bytes32(result) == bytes32(uint256(1));
        if (!accepted) revert SafeERC20FailedOperation(token);
    }

    function _revertWith(bytes memory reason) private pure {
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
