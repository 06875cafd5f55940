// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Signatures of contracts (ERC-1271)
interface IERC1271 {
    /// @return 0x1626ba7e, the selector of this function, for a signature of the hash.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4);
}

/// @title An account that is a contract, for local chains and tests
/// @notice Its owner has it execute batches of calls, of which all succeed or none, and signs for it.
contract SmartAccount is IERC1271 {
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

    /// @notice The signature is the owner's: 65 bytes r, s, v.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        address signer = ecrecover(hash, uint8(signature[64]), bytes32(signature[:32]), bytes32(signature[32:64]));
        return signer != address(0) && signer == owner ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}

/// @title Deploys smart accounts at addresses that are known before (CREATE2)
contract SmartAccountFactory {
    function create(address owner, bytes32 salt) external returns (SmartAccount) {
        return new SmartAccount{salt: salt}(owner);
    }

    /// @notice The address that create deploys to.
    function addressOf(address owner, bytes32 salt) external view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(SmartAccount).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, code)))));
    }
}
