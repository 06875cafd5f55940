// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "./SmartAccount.sol";
import {IERC20} from "./TestToken.sol";

/// @title The signed batch transfers of Permit2
interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitBatchTransferFrom {
        TokenPermissions[] permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    function permitWitnessTransferFrom(
        PermitBatchTransferFrom calldata permit,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external;
}

/// @title A stand-in for Permit2 on local chains and in tests
/// @notice It moves the tokens that their owner has approved for it to where a signature of the owner allows, once per nonce. It has the
/// functions, errors and typed data (EIP-712) of Permit2's batch transfer with a witness, and nothing else of it.
/// @dev It has no constructor and no immutables, so that its code can be part of a genesis block.
contract Permit2 is IPermit2 {
    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);

    error SignatureExpired(uint256 signatureDeadline);
    error InvalidNonce();
    error InvalidAmount(uint256 maxAmount);
    error LengthMismatch();
    error InvalidSignatureLength();
    error InvalidSignature();
    error InvalidSigner();
    error InvalidContractSignature();

    bytes32 private constant DOMAIN_TYPE_HASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMISSIONS_TYPE_HASH = keccak256("TokenPermissions(address token,uint256 amount)");
    string private constant TYPE_START =
        "PermitBatchWitnessTransferFrom(TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline,";

    /// @notice The used nonces of an owner, 256 a word: nonce n is bit n & 255 of the word n >> 8.
    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    /// @notice Moves permitted tokens of their owner. The caller is the spender that the owner has signed for.
    function permitWitnessTransferFrom(
        PermitBatchTransferFrom calldata permit,
        SignatureTransferDetails[] calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (permit.permitted.length != transferDetails.length) revert LengthMismatch();
        _useNonce(owner, permit.nonce);
        _verify(owner, _digest(permit, witness, witnessTypeString), signature);
        for (uint256 i = 0; i < transferDetails.length; i++) {
            TokenPermissions calldata permitted = permit.permitted[i];
            uint256 amount = transferDetails[i].requestedAmount;
            if (amount > permitted.amount) revert InvalidAmount(permitted.amount);
            if (amount > 0) _transfer(permitted.token, owner, transferDetails[i].to, amount);
        }
    }

    /// @notice Makes nonces of the caller unusable: those of the set bits of the mask.
    function invalidateUnorderedNonces(uint256 word, uint256 mask) external {
        nonceBitmap[msg.sender][word] |= mask;
        emit UnorderedNonceInvalidation(msg.sender, word, mask);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPE_HASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    function _useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << (nonce & 255);
        uint256 used = nonceBitmap[owner][nonce >> 8];
        if (used & bit != 0) revert InvalidNonce();
        nonceBitmap[owner][nonce >> 8] = used | bit;
    }

    /// @param witnessTypeString The end of the permit's type, from the member of the witness on, and the types that it names.
    function _digest(PermitBatchTransferFrom calldata permit, bytes32 witness, string calldata witnessTypeString)
        private
        view
        returns (bytes32)
    {
        bytes32[] memory permitted = new bytes32[](permit.permitted.length);
        for (uint256 i = 0; i < permitted.length; i++) {
            permitted[i] = keccak256(abi.encode(PERMISSIONS_TYPE_HASH, permit.permitted[i]));
        }
        bytes32 message = keccak256(
            abi.encode(
                keccak256(abi.encodePacked(TYPE_START, witnessTypeString)),
                keccak256(abi.encodePacked(permitted)),
                msg.sender,
                permit.nonce,
                permit.deadline,
                witness
            )
        );
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), message));
    }

    /// @dev An account without code signs with 65 bytes r, s, v or 64 bytes (EIP-2098); one with code is asked (ERC-1271).
    function _verify(address owner, bytes32 digest, bytes calldata signature) private view {
        if (owner.code.length > 0) {
            bytes4 answer = IERC1271(owner).isValidSignature(digest, signature);
            if (answer != IERC1271.isValidSignature.selector) revert InvalidContractSignature();
            return;
        }
        if (signature.length != 64 && signature.length != 65) revert InvalidSignatureLength();
        bytes32 s = bytes32(signature[32:64]);
        uint8 v;
        if (signature.length == 65) {
            v = uint8(signature[64]);
        } else {
            v = uint8(uint256(s) >> 255) + 27;
            s = bytes32(uint256(s) << 1 >> 1);
        }
        address signer = ecrecover(digest, v, bytes32(signature[:32]), s);
        if (signer == address(0)) revert InvalidSignature();
        if (signer != owner) revert InvalidSigner();
    }

    /// @dev A token accepts by returning true or nothing, as in Permit2, which does not ask whether it has code.
    function _transfer(address token, address from, address to, uint256 amount) private {
        (bool ok, bytes memory result) = token.call(abi.encodeCall(IERC20.transferFrom, (from, to, amount)));
        require(ok && (result.length == 0 || bytes32(result) == bytes32(uint256(1))), "TRANSFER_FROM_FAILED");
    }
}
