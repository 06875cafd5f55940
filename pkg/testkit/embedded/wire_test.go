package embedded_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"time"
)

// query runs one statement over Postgres's own protocol and returns the first column of its last row. These tests need no
// driver for that, and this package must not depend on one.
func query(databaseURL, statement string) (string, error) {
	target, err := url.Parse(databaseURL)
	if err != nil {
		return "", err
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	at := target.Query()
	socket := filepath.Join(at.Get("host"), ".s.PGSQL."+cmp.Or(at.Get("port"), "5432"))
	conn, err := dialer.DialContext(context.Background(), "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return "", err
	}
	startup := fmt.Sprintf("\x00\x03\x00\x00user\x00%s\x00database\x00%s\x00\x00", target.User.Username(), target.Path[1:])
	if _, err := conn.Write(frame("", startup)); err != nil {
		return "", err
	}
	if _, err := await(conn); err != nil {
		return "", err
	}
	if _, err := conn.Write(frame("Q", statement+"\x00")); err != nil {
		return "", err
	}
	return await(conn)
}

func frame(kind, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte(kind), uint32(len(body)+4)), body...)
}

// await reads up to ReadyForQuery.
func await(conn io.Reader) (value string, err error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return "", err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(conn, body); err != nil {
			return "", err
		}
		switch head[0] {
		case 'D':
			value = string(body[6 : 6+binary.BigEndian.Uint32(body[2:])])
		case 'E':
			err = errors.New(string(bytes.ReplaceAll(body, []byte{0}, []byte(" "))))
			if bytes.Contains(body, []byte("SFATAL")) {
				return "", err
			}
		case 'Z':
			return value, err
		}
	}
}
