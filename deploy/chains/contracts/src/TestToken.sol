// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The part of ERC-20 that moves tokens.
interface IERC20 {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
    function approve(address spender, uint256 value) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

/// @title An ERC-20 token for local chains and tests
/// @notice Anybody can mint it. With the fee flag a hundredth of each transfer is burned, as some tokens do.
contract TestToken is IERC20 {
    /// @notice Errors of ERC-6093.
    error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);
    error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed);

    string public name;
    string public symbol;
    uint8 public immutable decimals;
    bool public immutable takesFee;
    uint256 public totalSupply;
    mapping(address account => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;

    constructor(string memory name_, string memory symbol_, uint8 decimals_, bool takesFee_) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
        takesFee = takesFee_;
    }

    /// @notice Creates tokens for an account.
    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function approve(address spender, uint256 value) public virtual returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    /// @notice Moves tokens by an allowance; the greatest allowance is never used up.
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) revert ERC20InsufficientAllowance(msg.sender, allowed, value);
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - value;
        _move(from, to, value);
        return true;
    }

    function _move(address from, address to, uint256 value) internal virtual {
        uint256 balance = balanceOf[from];
        if (balance < value) revert ERC20InsufficientBalance(from, balance, value);
        uint256 fee = takesFee ? value / 100 : 0;
        balanceOf[from] = balance - value;
        balanceOf[to] += value - fee;
        emit Transfer(from, to, value - fee);
        if (fee == 0) return;
        totalSupply -= fee;
        emit Transfer(from, address(0), fee);
    }
}

/// @title A test token with USDT's rule for allowances
/// @notice An allowance that is not zero must be set to zero before it can be another; approve reverts without data otherwise.
contract TestTether is TestToken {
    constructor(string memory name_, string memory symbol_, uint8 decimals_)
        TestToken(name_, symbol_, decimals_, false)
    {}

    function approve(address spender, uint256 value) public override returns (bool) {
        if (value != 0 && allowance[msg.sender][spender] != 0) revert();
        return super.approve(spender, value);
    }
}
