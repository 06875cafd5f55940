// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "./TestToken.sol";

/// @title A settler for local chains and tests
/// @notice Has the functions, events, errors and order ids of the ERC-7683 settler that the service opens orders at. The
/// bridge is missing: the owner carries the messages from the destination's settler to the origin's by `deliver`.
/// @dev One mapping holds the status of an order in both of its roles, origin and destination, as the reference settler's does.
contract Settler {
    /// @notice An order as its opener submits it (ERC-7683).
    struct OnchainCrossChainOrder {
        uint32 fillDeadline;
        bytes32 orderDataType;
        bytes orderData;
    }

    /// @notice A token and amount that somebody pays (ERC-7683). Token 0 is the chain's native asset.
    struct Output {
        bytes32 token;
        uint256 amount;
        bytes32 recipient;
        uint256 chainId;
    }

    /// @notice What a filler passes to `fill`, and where (ERC-7683).
    struct FillInstruction {
        uint256 destinationChainId;
        bytes32 destinationSettler;
        bytes originData;
    }

    /// @notice An order in the form that fillers of any settler understand (ERC-7683).
    struct ResolvedCrossChainOrder {
        address user;
        uint256 originChainId;
        uint32 openDeadline;
        uint32 fillDeadline;
        bytes32 orderId;
        Output[] maxSpent;
        Output[] minReceived;
        FillInstruction[] fillInstructions;
    }

    /// @notice The terms of an order. Its id is keccak256(abi.encode(OrderData)).
    struct OrderData {
        bytes32 sender;
        bytes32 recipient;
        bytes32 inputToken;
        bytes32 outputToken;
        uint256 amountIn;
        uint256 amountOut;
        uint256 senderNonce;
        uint32 originDomain;
        uint32 destinationDomain;
        bytes32 destinationSettler;
        uint32 fillDeadline;
        bytes data;
    }

    /// @notice Emitted on the origin: the input is in escrow here.
    event Open(bytes32 indexed orderId, ResolvedCrossChainOrder resolvedOrder);
    /// @notice Emitted on the destination: the recipient has the output.
    event Filled(bytes32 orderId, bytes originData, bytes fillerData);
    /// @notice Emitted on the destination: the message that the orders were filled, with each filler's data.
    event Settle(bytes32[] orderIds, bytes[] ordersFillerData);
    /// @notice Emitted on the destination: the message that the orders can no longer be filled.
    event Refund(bytes32[] orderIds);
    /// @notice Emitted on the origin: the filler has the input.
    event Settled(bytes32 orderId, address receiver);
    /// @notice Emitted on the origin: the sender has the input back.
    event Refunded(bytes32 orderId, address receiver);

    error InvalidOrderType(bytes32 orderDataType);
    error InvalidOrderOrigin();
    error InvalidOrderDomain();
    error InvalidOrderId();
    error InvalidOrderStatus();
    error InvalidNativeAmount();
    error InvalidNonce();
    error OrderFillExpired();
    error OrderFillNotExpired();
    error PaymentFailed();
    error NotOwner();
    error ReentrantCall();
    /// @notice The error of OpenZeppelin's SafeERC20.
    error SafeERC20FailedOperation(address token);

    bytes32 public constant ORDER_DATA_TYPE = keccak256(
        "OrderData(bytes32 sender,bytes32 recipient,bytes32 inputToken,bytes32 outputToken,uint256 amountIn,uint256 amountOut,"
        "uint256 senderNonce,uint32 originDomain,uint32 destinationDomain,bytes32 destinationSettler,uint32 fillDeadline,bytes data)"
    );

    bytes32 public constant UNKNOWN = "";
    bytes32 public constant OPENED = "OPENED";
    bytes32 public constant FILLED = "FILLED";
    bytes32 public constant SETTLED = "SETTLED";
    bytes32 public constant REFUNDED = "REFUNDED";

    address public immutable owner;
    /// @notice The domain of this chain in order data.
    uint32 public immutable localDomain;
    /// @notice Whether orders whose origin and destination are this chain can be filled; the reference settler cannot.
    bool public immutable sameChain;
    uint256 private immutable messageFee;
    bool private entered;

    /// @notice The status of an order, text that zeros pad to 32 bytes.
    mapping(bytes32 orderId => bytes32) public orderStatus;
    /// @notice Whether a sender's nonce is used up.
    mapping(address sender => mapping(uint256 nonce => bool)) public usedNonces;
    mapping(bytes32 orderId => OrderData) private openOrders;
    mapping(bytes32 orderId => bytes) private fillersData;
    mapping(bytes32 orderId => uint32) private originDomains;

    /// @dev Without it a token could open an order while the receipt of another order is being measured, and what arrives would
    /// count twice.
    modifier nonReentrant() {
        if (entered) revert ReentrantCall();
        entered = true;
        _;
        entered = false;
    }

    /// @param domain The domain of this chain.
    /// @param fillsOnOwnChain The value of sameChain.
    /// @param fee What settle and refund cost, in wei.
    constructor(uint32 domain, bool fillsOnOwnChain, uint256 fee) {
        owner = msg.sender;
        localDomain = domain;
        sameChain = fillsOnOwnChain;
        messageFee = fee;
    }

    /// @notice Opens an order and takes its input into escrow. The opener becomes its sender and the outer deadline its
    /// deadline, so what is opened has another id if these differ in the order data.
    function open(OnchainCrossChainOrder calldata order) external payable nonReentrant {
        OrderData memory terms = _decode(order);
        terms.sender = _bytes32(msg.sender);
        terms.fillDeadline = order.fillDeadline;
        if (terms.originDomain != localDomain) revert InvalidOrderOrigin();
        _useNonce(terms.senderNonce);
        bytes memory encoded = abi.encode(terms);
        bytes32 orderId = keccak256(encoded);
        orderStatus[orderId] = OPENED;
        openOrders[orderId] = terms;
        _collect(terms.inputToken, terms.amountIn, address(this));
        emit Open(orderId, _resolve(orderId, terms, encoded));
    }

    /// @notice Pays an order's output to its recipient. Called on the destination.
    /// @param originData The encoded order data.
    /// @param fillerData The ABI-encoded bytes32 address that gets the input on the origin.
    function fill(bytes32 orderId, bytes calldata originData, bytes calldata fillerData) external payable nonReentrant {
        if (keccak256(originData) != orderId) revert InvalidOrderId();
        OrderData memory terms = abi.decode(originData, (OrderData));
        if (block.timestamp > terms.fillDeadline) revert OrderFillExpired();
        bool local = _checkUnfilled(orderId, terms);
        orderStatus[orderId] = FILLED;
        fillersData[orderId] = fillerData;
        originDomains[orderId] = terms.originDomain;
        _collect(terms.outputToken, terms.amountOut, _address(terms.recipient));
        emit Filled(orderId, originData, fillerData);
        if (local) _settle(orderId, fillerData);
    }

    /// @notice Sends the message that orders of one origin were filled. Called on the destination; repeating it is harmless.
    function settle(bytes32[] calldata orderIds) external payable nonReentrant {
        bytes[] memory data = new bytes[](orderIds.length);
        for (uint256 i = 0; i < orderIds.length; i++) {
            if (orderStatus[orderIds[i]] != FILLED) revert InvalidOrderStatus();
            if (originDomains[orderIds[i]] != originDomains[orderIds[0]]) revert InvalidOrderDomain();
            data[i] = fillersData[orderIds[i]];
        }
        _payMessage();
        emit Settle(orderIds, data);
    }

    /// @notice Sends the message that orders of one origin were not filled before their deadline. Called on the destination.
    function refund(OnchainCrossChainOrder[] calldata orders) external payable nonReentrant {
        bytes32[] memory orderIds = new bytes32[](orders.length);
        uint32 origin;
        for (uint256 i = 0; i < orders.length; i++) {
            OrderData memory terms = _decode(orders[i]);
            if (block.timestamp <= terms.fillDeadline) revert OrderFillNotExpired();
            if (i == 0) origin = terms.originDomain;
            if (terms.originDomain != origin) revert InvalidOrderDomain();
            orderIds[i] = keccak256(orders[i].orderData);
            if (_checkUnfilled(orderIds[i], terms)) _refund(orderIds[i]);
        }
        _payMessage();
        emit Refund(orderIds);
    }

    /// @notice Carries out a message of another settler, which a bridge would deliver. Orders that are not open here, or that
    /// name another settler as their destination, are left as they are.
    /// @param domain The domain of the settler that sent the message.
    /// @param settler That settler.
    /// @param filled Whether the message is Settle; Refund if not.
    /// @param ordersFillerData As in Settle; ignored for Refund.
    function deliver(
        uint32 domain,
        bytes32 settler,
        bool filled,
        bytes32[] calldata orderIds,
        bytes[] calldata ordersFillerData
    ) external nonReentrant {
        if (msg.sender != owner) revert NotOwner();
        for (uint256 i = 0; i < orderIds.length; i++) {
            OrderData storage terms = openOrders[orderIds[i]];
            bool named = terms.destinationDomain == domain && terms.destinationSettler == settler;
            if (!named || orderStatus[orderIds[i]] != OPENED) continue;
            if (filled) _settle(orderIds[i], ordersFillerData[i]);
            else _refund(orderIds[i]);
        }
    }

    /// @notice Uses up a nonce of the caller, so that no order with it can be opened any more.
    function invalidateNonces(uint256 nonce) external {
        _useNonce(nonce);
    }

    /// @notice What settle and refund cost for orders of an origin, in wei.
    function quoteGasPayment(uint32) external view returns (uint256) {
        return messageFee;
    }

    function _decode(OnchainCrossChainOrder calldata order) private pure returns (OrderData memory) {
        if (order.orderDataType != ORDER_DATA_TYPE) revert InvalidOrderType(order.orderDataType);
        return abi.decode(order.orderData, (OrderData));
    }

    /// @dev Reverts unless the order is this settler's to fill and was not filled. An order of the same chain is open in the
    /// same mapping, so without sameChain it never passes.
    function _checkUnfilled(bytes32 orderId, OrderData memory terms) private view returns (bool local) {
        if (terms.destinationDomain != localDomain || terms.destinationSettler != _bytes32(address(this))) {
            revert InvalidOrderDomain();
        }
        local = sameChain && terms.originDomain == localDomain;
        if (orderStatus[orderId] != (local ? OPENED : UNKNOWN)) revert InvalidOrderStatus();
    }

    function _useNonce(uint256 nonce) private {
        if (usedNonces[msg.sender][nonce]) revert InvalidNonce();
        usedNonces[msg.sender][nonce] = true;
    }

    function _settle(bytes32 orderId, bytes memory fillerData) private {
        address receiver = _address(abi.decode(fillerData, (bytes32)));
        orderStatus[orderId] = SETTLED;
        _pay(openOrders[orderId].inputToken, openOrders[orderId].amountIn, receiver);
        emit Settled(orderId, receiver);
    }

    function _refund(bytes32 orderId) private {
        address receiver = _address(openOrders[orderId].sender);
        orderStatus[orderId] = REFUNDED;
        _pay(openOrders[orderId].inputToken, openOrders[orderId].amountIn, receiver);
        emit Refunded(orderId, receiver);
    }

    /// @dev Moves an amount from the caller: native as the call's value, a token by its allowance. All of it must arrive, which a
    /// token that takes a fee does not grant; a caller who pays to itself is not measured.
    function _collect(bytes32 token, uint256 amount, address to) private {
        if (msg.value != (token == 0 ? amount : 0)) revert InvalidNativeAmount();
        if (token != 0) {
            IERC20 erc20 = IERC20(_address(token));
            uint256 before = erc20.balanceOf(to);
            _callToken(erc20, abi.encodeCall(IERC20.transferFrom, (msg.sender, to, amount)));
            if (msg.sender != to && erc20.balanceOf(to) - before != amount) revert PaymentFailed();
        } else if (to != address(this)) {
            _pay(token, amount, to);
        }
    }

    /// @dev Moves an amount from here. A token that charges more than the amount would take it from other orders' escrow.
    function _pay(bytes32 token, uint256 amount, address to) private {
        if (token == 0) {
            (bool paid,) = to.call{value: amount}("");
            if (!paid) revert PaymentFailed();
            return;
        }
        IERC20 erc20 = IERC20(_address(token));
        uint256 before = erc20.balanceOf(address(this));
        _callToken(erc20, abi.encodeCall(IERC20.transfer, (to, amount)));
        if (to != address(this) && before - erc20.balanceOf(address(this)) != amount) revert PaymentFailed();
    }

    /// @dev Calls a token, which must return true or nothing (OpenZeppelin's SafeERC20). That it is a contract has shown in its
    /// answer to balanceOf. Its own reason is passed on where it reverts.
    function _callToken(IERC20 token, bytes memory data) private {
        (bool ok, bytes memory result) = address(token).call(data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
        if (result.length > 0 && bytes32(result) != bytes32(uint256(1))) revert SafeERC20FailedOperation(address(token));
    }

    /// @dev The fee of a message must not stay here, beside what orders have in escrow.
    function _payMessage() private {
        if (msg.value != messageFee) revert InvalidNativeAmount();
        if (msg.value > 0) _pay(0, msg.value, owner);
    }

    function _resolve(bytes32 orderId, OrderData memory terms, bytes memory encoded)
        private
        pure
        returns (ResolvedCrossChainOrder memory resolved)
    {
        resolved.user = _address(terms.sender);
        resolved.originChainId = terms.originDomain;
        resolved.openDeadline = type(uint32).max;
        resolved.fillDeadline = terms.fillDeadline;
        resolved.orderId = orderId;
        resolved.maxSpent = new Output[](1);
        resolved.maxSpent[0] =
            Output(terms.outputToken, terms.amountOut, terms.destinationSettler, terms.destinationDomain);
        resolved.minReceived = new Output[](1);
        resolved.minReceived[0] = Output(terms.inputToken, terms.amountIn, 0, terms.originDomain);
        resolved.fillInstructions = new FillInstruction[](1);
        resolved.fillInstructions[0] = FillInstruction(terms.destinationDomain, terms.destinationSettler, encoded);
    }

    function _bytes32(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }

    function _address(bytes32 account) private pure returns (address) {
        return address(uint160(uint256(account)));
    }
}
