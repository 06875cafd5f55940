package main

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// syntheticID is a UUIDv7 of a given time; n makes it unique.
func syntheticID(at time.Time, n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16)
	id[6] = 0x70
	binary.BigEndian.PutUint64(id[8:], uint64(n)) //nolint:gosec // n counts from 0
	id[8] = 0x80
	return id
}

func syntheticOrder(n int) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // n counts from 0
	return sum[:]
}
