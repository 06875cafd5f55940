// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A contract that answers isValidSignature, and every other call, as it likes; for tests
contract HostileAccount {
    enum Answer {
        Reverts, // with the magic value of ERC-1271 as its reason
        Nothing,
        Short, // the 4 bytes of the magic value alone
        Long, // the magic value and 32 bytes more
        Dirty, // the magic value with other bytes after it
        Flood, // 1 MiB that begins with the magic value
        Burn, // all gas
        Invalid // the opcode
    }

    Answer private immutable answer;

    constructor(Answer answer_) {
        answer = answer_;
    }

    fallback() external {
        Answer mine = answer;
        assembly {
            mstore(0, shl(224, 0x1626ba7e))
            switch mine
            case 0 { revert(0, 32) }
            case 1 { return(0, 0) }
            case 2 { return(0, 4) }
            case 3 { return(0, 64) }
            case 4 {
                mstore8(31, 1)
                return(0, 32)
            }
            case 5 { return(0, 0x100000) }
            case 6 { for {} 1 {} {} }
            default { invalid() }
        }
    }
}
