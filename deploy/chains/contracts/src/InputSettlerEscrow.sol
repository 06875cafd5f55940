// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IInputOracle} from "./Oracle.sol";
import {SignedPayments} from "./SignedPayments.sol";
import {MandateOutput, NotImplemented, StandardOrder, WrongChain} from "./StandardOrder.sol";
import {fillHash, lowAddress, toAddress} from "./StandardOrder.sol";

/// @title An input settler for local chains and tests
/// @notice It holds the inputs of orders on their origin until a solver claims them or they expire, with the interface of the Open
/// Intents Framework's InputSettlerEscrow and the native inputs of LI.FI's.
/// @dev An order's status is set before anything is paid, so that a recipient or a token that calls back finds the order ended.
contract InputSettlerEscrow is SignedPayments {
    enum OrderStatus {
        None,
        Deposited,
        Claimed,
        Refunded
    }

    /// @notice When a solver filled an output, and the solver's name.
    struct SolveParams {
        uint32 timestamp;
        bytes32 solver;
    }

    bytes1 private constant PERMITTED = 0x00;
    bytes1 private constant AUTHORIZED = 0x01;
    bytes1 private constant SELF = 0xff;

    event Open(bytes32 indexed orderId, StandardOrder order);
    event Finalised(bytes32 indexed orderId, bytes32 solver, bytes32 destination);
    event Refunded(bytes32 indexed orderId);

    error UserIsZero();
    error TimestampPassed();
    error TimestampNotPassed();
    error FillDeadlineAfterExpiry(uint32 fillDeadline, uint32 expires);
    error InvalidOrderStatus();
    error InvalidNativeValue(uint256 expected, uint256 actual);
    error NoDestination();
    error NotOrderOwner();
    error InvalidTimestampLength();
    error FilledTooLate(uint32 expected, uint32 actual);

    mapping(bytes32 orderId => OrderStatus) public orderStatus;

    modifier onItsChain(StandardOrder calldata order) {
        if (order.originChainId != block.chainid) revert WrongChain(order.originChainId, block.chainid);
        _;
    }

    /// @notice Takes an order's inputs from the caller, who need not be the order's user.
    function open(StandardOrder calldata order) external payable onItsChain(order) {
        bytes32 orderId = _begin(order);
        _collect(order.inputs);
        emit Open(orderId, order);
    }

    /// @notice Takes an order's inputs from a sponsor, who need not be the order's user. Anyone may call it.
    /// @param signature A byte with its type and the sponsor's signature: 0x00 for Permit2, 0x01 for authorizations of the tokens
    /// (ERC-3009). 0xff alone, or nothing, is for a sponsor who is the caller and pays by allowance.
    function openFor(StandardOrder calldata order, address sponsor, bytes calldata signature)
        external
        onItsChain(order)
    {
        bytes32 orderId = _begin(order);
        bytes1 signatureType = signature.length == 0 ? SELF : signature[0];
        if (signatureType == PERMITTED) {
            _collectPermitted(order, sponsor, signature[1:]);
        } else if (signatureType == AUTHORIZED) {
            _collectAuthorized(order, orderId, sponsor, signature[1:]);
        } else if (signatureType == SELF && sponsor == msg.sender) {
            _collect(order.inputs);
        } else {
            revert SignatureNotSupported(signatureType);
        }
        emit Open(orderId, order);
    }

    /// @notice Returns an expired order's inputs to its user. Anyone may call it.
    function refund(StandardOrder calldata order) external onItsChain(order) {
        if (block.timestamp <= order.expires) revert TimestampNotPassed();
        bytes32 orderId = orderIdentifier(order);
        _pay(orderId, order.inputs, order.user, OrderStatus.Refunded);
        emit Refunded(orderId);
    }

    /// @notice Pays the inputs to the destination that the solver names, once the order's oracle attests the fill of each output.
    /// It works after the order has expired too, until somebody refunds.
    /// @param call Must be empty: the destination is not called.
    function finalise(
        StandardOrder calldata order,
        SolveParams[] calldata solveParams,
        bytes32 destination,
        bytes calldata call
    ) external onItsChain(order) {
        if (lowAddress(destination) == address(0)) revert NoDestination();
        if (call.length > 0) revert NotImplemented();
        bytes32 solver = solveParams[0].solver;
        if (lowAddress(solver) != msg.sender) revert NotOrderOwner();
        bytes32 orderId = orderIdentifier(order);
        _requireFilled(orderId, order, solveParams);
        _pay(orderId, order.inputs, lowAddress(destination), OrderStatus.Claimed);
        emit Finalised(orderId, solver, destination);
    }

    /// @notice The id of an order of this settler.
    function orderIdentifier(StandardOrder calldata order) public view returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                block.chainid,
                address(this),
                order.user,
                order.nonce,
                order.expires,
                order.fillDeadline,
                order.inputOracle,
                keccak256(abi.encodePacked(order.inputs)),
                abi.encode(order.outputs)
            )
        );
    }

    /// @dev Checks that the order can be opened and marks it as open.
    function _begin(StandardOrder calldata order) private returns (bytes32 orderId) {
        if (order.user == address(0)) revert UserIsZero();
        if (block.timestamp >= order.fillDeadline || block.timestamp >= order.expires) revert TimestampPassed();
        if (order.fillDeadline > order.expires) revert FillDeadlineAfterExpiry(order.fillDeadline, order.expires);
        orderId = orderIdentifier(order);
        if (orderStatus[orderId] != OrderStatus.None) revert InvalidOrderStatus();
        orderStatus[orderId] = OrderStatus.Deposited;
    }

    /// @dev The call's value must be what the native inputs add up to.
    function _collect(uint256[2][] calldata inputs) private {
        uint256 native = 0;
        for (uint256 i = 0; i < inputs.length; i++) {
            if (inputs[i][0] == 0) native += inputs[i][1];
        }
        if (msg.value != native) revert InvalidNativeValue(native, msg.value);
        for (uint256 i = 0; i < inputs.length; i++) {
            if (inputs[i][0] != 0) _collectToken(toAddress(inputs[i][0]), address(this), inputs[i][1]);
        }
    }

    function _pay(bytes32 orderId, uint256[2][] calldata inputs, address to, OrderStatus status) private {
        if (orderStatus[orderId] != OrderStatus.Deposited) revert InvalidOrderStatus();
        orderStatus[orderId] = status;
        for (uint256 i = 0; i < inputs.length; i++) {
            if (inputs[i][0] == 0) _payNative(to, inputs[i][1]);
            else _payToken(toAddress(inputs[i][0]), to, inputs[i][1]);
        }
    }

    function _requireFilled(bytes32 orderId, StandardOrder calldata order, SolveParams[] calldata solveParams)
        private
        view
    {
        if (solveParams.length != order.outputs.length) revert InvalidTimestampLength();
        bytes memory proofs;
        for (uint256 i = 0; i < solveParams.length; i++) {
            SolveParams calldata params = solveParams[i];
            if (params.timestamp > order.fillDeadline) revert FilledTooLate(order.fillDeadline, params.timestamp);
            MandateOutput calldata output = order.outputs[i];
            bytes32 fill = fillHash(orderId, params.solver, params.timestamp, output);
            proofs = bytes.concat(proofs, abi.encode(output.chainId, output.oracle, output.settler, fill));
        }
        IInputOracle(order.inputOracle).efficientRequireProven(proofs);
    }
}
