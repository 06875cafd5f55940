// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Payments} from "./Payments.sol";
import {IPermit2} from "./Permit2.sol";
import {MandateOutput, StandardOrder, toAddress} from "./StandardOrder.sol";
import {IERC3009} from "./TestFiatToken.sol";
import {IERC20} from "./TestToken.sol";

/// @title How an input settler takes the inputs of an order by a signature
abstract contract SignedPayments is Payments {
    error SignatureNotSupported(bytes1 signatureType);
    error SignatureAndInputsNotEqual();
    error InvalidBalanceDelta(uint256 expected, uint256 actual);
    error CodeSize0();

    /// @dev Permit2 has this address on all chains that it was deployed to by the deterministic deployer.
    IPermit2 internal constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    string private constant OUTPUT_TYPE =
        "MandateOutput(bytes32 oracle,bytes32 settler,uint256 chainId,bytes32 token,uint256 amount,bytes32 recipient,bytes callbackData,bytes context)";
    string private constant WITNESS_TYPE =
        "Permit2Witness(address user,uint32 expires,address inputOracle,MandateOutput[] outputs)";
    bytes32 private constant OUTPUT_TYPE_HASH = keccak256(bytes(OUTPUT_TYPE));
    bytes32 private constant WITNESS_TYPE_HASH = keccak256(abi.encodePacked(WITNESS_TYPE, OUTPUT_TYPE));
    string private constant WITNESS_TYPE_STRING = string.concat(
        "Permit2Witness witness)", OUTPUT_TYPE, WITNESS_TYPE, "TokenPermissions(address token,uint256 amount)"
    );

    /// @dev The sponsor's signature is over the inputs, this contract, the nonce, the deadline and, as the witness, the rest of the order.
    function _collectPermitted(StandardOrder calldata order, address sponsor, bytes calldata signature) internal {
        uint256 n = order.inputs.length;
        IPermit2.PermitBatchTransferFrom memory permit =
            IPermit2.PermitBatchTransferFrom(new IPermit2.TokenPermissions[](n), order.nonce, order.fillDeadline);
        IPermit2.SignatureTransferDetails[] memory transfers = new IPermit2.SignatureTransferDetails[](n);
        for (uint256 i = 0; i < n; i++) {
            uint256 amount = order.inputs[i][1];
            permit.permitted[i] = IPermit2.TokenPermissions(_contractAt(order.inputs[i][0]), amount);
            transfers[i] = IPermit2.SignatureTransferDetails(address(this), amount);
        }
        PERMIT2.permitWitnessTransferFrom(permit, transfers, sponsor, _witness(order), WITNESS_TYPE_STRING, signature);
    }

    /// @dev Each input's token takes an authorization (ERC-3009) of the sponsor whose nonce is the order's id. The signature is that of the
    /// only input, or one for each input as bytes[].
    function _collectAuthorized(
        StandardOrder calldata order,
        bytes32 orderId,
        address sponsor,
        bytes calldata signature
    ) internal {
        uint256 n = order.inputs.length;
        if (n == 1 && _receive(order, 0, orderId, sponsor, signature)) return;
        // bytes[] begins with its offset and its length. Other bytes are the signature that the token has refused.
        bool listed = signature.length >= 64 && uint256(bytes32(signature[:32])) == 32;
        if (!listed || uint256(bytes32(signature[32:64])) != n) revert SignatureAndInputsNotEqual();
        bytes[] memory signatures = abi.decode(signature, (bytes[]));
        for (uint256 i = 0; i < n; i++) {
            if (!_receive(order, i, orderId, sponsor, signatures[i])) revert SignatureAndInputsNotEqual();
        }
    }

    /// @dev Whether the token took the authorization. The balance is compared, since some tokens let every unknown call succeed (WETH9).
    function _receive(
        StandardOrder calldata order,
        uint256 i,
        bytes32 orderId,
        address sponsor,
        bytes memory signature
    ) private returns (bool ok) {
        address token = _contractAt(order.inputs[i][0]);
        uint256 amount = order.inputs[i][1];
        uint256 balance = IERC20(token).balanceOf(address(this));
        (ok,) = token.call(
            abi.encodeCall(
                IERC3009.receiveWithAuthorization,
                (sponsor, address(this), amount, 0, order.fillDeadline, orderId, signature)
            )
        );
        if (!ok) return false;
        uint256 received = IERC20(token).balanceOf(address(this)) - balance;
        if (received < amount) revert InvalidBalanceDelta(amount, received);
    }

    function _contractAt(uint256 word) private view returns (address token) {
        token = toAddress(word);
        if (token.code.length == 0) revert CodeSize0();
    }

    function _witness(StandardOrder calldata order) private pure returns (bytes32) {
        bytes32[] memory outputs = new bytes32[](order.outputs.length);
        for (uint256 i = 0; i < outputs.length; i++) {
            outputs[i] = _hashOutput(order.outputs[i]);
        }
        return keccak256(
            abi.encode(
                WITNESS_TYPE_HASH,
                order.user,
                order.expires,
                order.inputOracle,
                keccak256(abi.encodePacked(outputs))
            )
        );
    }

    function _hashOutput(MandateOutput calldata output) private pure returns (bytes32) {
        return keccak256(
            abi.encode(
                OUTPUT_TYPE_HASH,
                output.oracle,
                output.settler,
                output.chainId,
                output.token,
                output.amount,
                output.recipient,
                keccak256(output.callbackData),
                keccak256(output.context)
            )
        );
    }
}
