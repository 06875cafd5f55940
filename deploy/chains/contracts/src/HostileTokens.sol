// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TestToken} from "./TestToken.sol";

/// @title A token whose functions return nothing, as Tether's do
contract NoReturnToken {
    mapping(address account => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function approve(address spender, uint256 value) external {
        allowance[msg.sender][spender] = value;
    }

    function transfer(address to, uint256 value) external {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
    }

    function transferFrom(address from, address to, uint256 value) external {
        allowance[from][msg.sender] -= value;
        balanceOf[from] -= value;
        balanceOf[to] += value;
    }
}

/// @title A token that moves nothing and returns what it was told to
contract IdleToken {
    bool private immutable result;
    mapping(address account => uint256) public balanceOf;

    constructor(bool result_) {
        result = result_;
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function approve(address, uint256) external pure returns (bool) {
        return true;
    }

    function transfer(address, uint256) external view returns (bool) {
        return result;
    }

    function transferFrom(address, address, uint256) external view returns (bool) {
        return result;
    }
}

/// @title A token that charges the payer a hundredth on top of each transfer, once that is switched on
contract SurchargeToken is TestToken("Surcharge", "SUR", 6, false) {
    bool private charges;

    function charge() external {
        charges = true;
    }

    function _move(address from, address to, uint256 value) internal override {
        super._move(from, to, value);
        if (charges) super._move(from, address(1), value / 100);
    }
}

/// @title A token that makes a call of its own in its next transfer, and takes a fee
contract ReentrantToken is TestToken("Reentrant", "REE", 6, true) {
    address private target;
    bytes private data;
    /// @notice What the call returned, if it succeeded, or its reason.
    bytes public result;
    /// @notice Whether the call succeeded.
    bool public succeeded;

    /// @notice Sets the call that the next transfer makes.
    function prepare(address target_, bytes calldata data_) external {
        (target, data) = (target_, data_);
    }

    /// @notice Grants an allowance from this contract's own balance.
    function approveOwn(address spender, uint256 value) external {
        allowance[address(this)][spender] = value;
    }

    function _move(address from, address to, uint256 value) internal override {
        address called = target;
        target = address(0);
        if (called != address(0)) (succeeded, result) = called.call(data);
        super._move(from, to, value);
    }
}
