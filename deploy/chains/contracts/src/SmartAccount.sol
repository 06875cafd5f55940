// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title An account that is a contract, for local chains and tests
/// @notice Its owner has it execute batches of calls, of which all succeed or none.
contract SmartAccount {
    struct Call {
        address to;
        uint256 value;
        bytes data;
    }

    error NotOwner();

    address public immutable owner;

    constructor(address owner_) payable {
        owner = owner_;
    }

    receive() external payable {}

    /// @notice Executes the calls in order, as this account. A call that reverts reverts the batch with its own reason.
    function execute(Call[] calldata calls) external payable {
        if (msg.sender != owner) revert NotOwner();
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory reason) = calls[i].to.call{value: calls[i].value}(calls[i].data);
            if (ok) continue;
            assembly ("memory-safe") {
                revert(add(reason, 32), mload(reason))
            }
        }
    }
}
