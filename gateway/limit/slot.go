package limit

import "strings"

// slots is the number of hash slots of a Redis Cluster.
const slots = 1 << 14

// slot is the hash slot of a key: CRC16 (XMODEM) of the key, or of its hash tag.
func slot(key string) uint16 {
	if _, tag, opened := strings.Cut(key, "{"); opened {
		if tag, _, closed := strings.Cut(tag, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % slots
}
