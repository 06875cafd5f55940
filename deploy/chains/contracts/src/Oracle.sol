// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MandateOutput, fillHash} from "./StandardOrder.sol";

/// @title What an input settler asks before it pays a solver
interface IInputOracle {
    /// @notice Reverts unless each fill is attested.
    /// @param proofSeries 128 bytes a fill: chain id, oracle, output settler, and the hash of the fill.
    function efficientRequireProven(bytes calldata proofSeries) external view;
}

/// @title The fills that an oracle attests
abstract contract Oracle is IInputOracle {
    error NotDivisible(uint256 value, uint256 divisor);
    error NotProven();

    /// @notice Whether a fill is attested.
    mapping(
        uint256 chainId => mapping(bytes32 oracle => mapping(bytes32 settler => mapping(bytes32 fill => bool)))
    ) public isProven;

    function efficientRequireProven(bytes calldata proofSeries) external view {
        if (proofSeries.length % 128 != 0) revert NotDivisible(proofSeries.length, 128);
        for (uint256 i = 0; i < proofSeries.length; i += 128) {
            (uint256 chainId, bytes32 oracle, bytes32 settler, bytes32 fill) =
                abi.decode(proofSeries[i:i + 128], (uint256, bytes32, bytes32, bytes32));
            if (!isProven[chainId][oracle][settler][fill]) revert NotProven();
        }
    }

    function _attest(bytes32 orderId, bytes32 solver, uint32 timestamp, MandateOutput calldata output) internal {
        isProven[output.chainId][output.oracle][output.settler][fillHash(orderId, solver, timestamp, output)] = true;
    }
}

/// @title An oracle that attests what its owner says about other chains
contract OwnedOracle is Oracle {
    error NotOwner();

    address public immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    /// @notice Attests a fill of another chain, with the members of OutputFilled. Repeating it changes nothing.
    function setAttestation(bytes32 orderId, bytes32 solver, uint32 timestamp, MandateOutput calldata output) external {
        if (msg.sender != owner) revert NotOwner();
        _attest(orderId, solver, timestamp, output);
    }
}
