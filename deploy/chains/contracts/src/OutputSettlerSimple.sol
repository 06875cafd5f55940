// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Oracle} from "./Oracle.sol";
import {Payments} from "./Payments.sol";
import {MandateOutput, NotImplemented, WrongChain} from "./StandardOrder.sol";
import {lowAddress, outputHash, toAddress, toWord} from "./StandardOrder.sol";

/// @title What a recipient is called with after a fill with callback data
interface IOutputCallback {
    function outputFilled(bytes32 token, uint256 amount, bytes calldata callbackData) external;
}

/// @title An output settler for local chains and tests
/// @notice It pays the outputs of orders from the caller and keeps a record of each fill, with the interface of the Open Intents
/// Framework's OutputSettlerSimple. It never looks at the origin: anyone may have it fill any output for any order id. It is the
/// oracle of orders of its own chain.
contract OutputSettlerSimple is Oracle, Payments {
    event OutputFilled(
        bytes32 indexed orderId, bytes32 solver, uint32 timestamp, MandateOutput output, uint256 finalAmount
    );

    error FillDeadline();
    error AlreadyFilled();
    error WrongOutputSettler(bytes32 addressThis, bytes32 expected);
    error WrongOutputOracle(bytes32 addressThis, bytes32 expected);
    error InvalidAttestation(bytes32 storedFillRecord, bytes32 givenFillRecord);
    error FillerDataTooShort();
    error ZeroValue();
    error ExclusiveTo(bytes32 solver);

    mapping(bytes32 orderId => mapping(bytes32 outputHash => bytes32 fillRecord)) private fillRecords;

    modifier until(uint48 fillDeadline) {
        if (block.timestamp > fillDeadline) revert FillDeadline();
        _;
    }

    /// @notice Pays an output unless it is filled.
    /// @param fillDeadline The time until which the call pays, which the caller chooses.
    /// @param fillerData The solver's address in 32 bytes.
    /// @return The record of the fill, or of the earlier one.
    function fill(bytes32 orderId, MandateOutput calldata output, uint48 fillDeadline, bytes calldata fillerData)
        external
        payable
        until(fillDeadline)
        returns (bytes32)
    {
        _fill(orderId, output, fillerData);
        _returnExcess();
        return fillRecords[orderId][outputHash(output)];
    }

    /// @notice Pays the outputs that are not filled; reverts if the first one is.
    function fillOrderOutputs(
        bytes32 orderId,
        MandateOutput[] calldata outputs,
        uint48 fillDeadline,
        bytes calldata fillerData
    ) external payable until(fillDeadline) {
        for (uint256 i = 0; i < outputs.length; i++) {
            bool filled = _fill(orderId, outputs[i], fillerData);
            if (i == 0 && !filled) revert AlreadyFilled();
        }
        _returnExcess();
    }

    /// @notice Attests a fill of this settler to orders that name it as their oracle. Anyone may call it.
    function setAttestation(bytes32 orderId, bytes32 solver, uint32 timestamp, MandateOutput calldata output) external {
        bytes32 stored = fillRecords[orderId][outputHash(output)];
        bytes32 given = _fillRecord(solver, timestamp);
        if (stored != given) revert InvalidAttestation(stored, given);
        if (output.oracle != toWord(address(this))) revert WrongOutputOracle(toWord(address(this)), output.oracle);
        _attest(orderId, solver, timestamp, output);
    }

    /// @notice The hash of an output's solver and time, 0 for an output that is not filled.
    function getFillRecord(bytes32 orderId, MandateOutput calldata output) external view returns (bytes32) {
        return fillRecords[orderId][outputHash(output)];
    }

    function getFillRecord(bytes32 orderId, bytes32 hash) external view returns (bytes32) {
        return fillRecords[orderId][hash];
    }

    function _fill(bytes32 orderId, MandateOutput calldata output, bytes calldata fillerData)
        private
        returns (bool filled)
    {
        if (output.chainId != block.chainid) revert WrongChain(output.chainId, block.chainid);
        if (output.settler != toWord(address(this))) revert WrongOutputSettler(toWord(address(this)), output.settler);
        toAddress(uint256(output.oracle));
        if (fillerData.length < 32) revert FillerDataTooShort();
        bytes32 solver = bytes32(fillerData[:32]);
        if (solver == 0) revert ZeroValue();
        _checkContext(output.context, solver);

        bytes32 hash = outputHash(output);
        if (fillRecords[orderId][hash] != 0) return false;
        fillRecords[orderId][hash] = _fillRecord(solver, uint32(block.timestamp));
        address recipient = lowAddress(output.recipient);
        if (output.token == 0) _payNative(recipient, output.amount);
        else _collectToken(toAddress(uint256(output.token)), recipient, output.amount);
        if (output.callbackData.length > 0) {
            IOutputCallback(recipient).outputFilled(output.token, output.amount, output.callbackData);
        }
        emit OutputFilled(orderId, solver, uint32(block.timestamp), output, output.amount);
        return true;
    }

    /// @dev An empty context and 0x00 are a limit order, 0xe0 is one that until a start time is exclusive to a solver. Auctions are
    /// left out, so the output's amount is always the final one.
    function _checkContext(bytes calldata context, bytes32 solver) private view {
        if (context.length == 0 || (context.length == 1 && context[0] == 0x00)) return;
        if (context.length != 37 || context[0] != 0xe0) revert NotImplemented();
        bytes32 exclusiveFor = bytes32(context[1:33]);
        uint32 start = uint32(bytes4(context[33:37]));
        if (block.timestamp < start && solver != exclusiveFor) revert ExclusiveTo(exclusiveFor);
    }

    function _fillRecord(bytes32 solver, uint32 timestamp) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(solver, timestamp));
    }

    /// @dev Nothing of the native token belongs here between two calls.
    function _returnExcess() private {
        uint256 excess = address(this).balance;
        if (excess > 0) _payNative(msg.sender, excess);
    }
}
