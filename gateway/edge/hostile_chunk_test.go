package edge_test

import (
	"slices"
	"strings"
)

// chunks is a chunked write.
func chunks(text string) string { return write(chunkedTE, text) }

var noTrailers = bad("This service does not take trailers.")

// The gateway reads a chunked body whole and tells core its length, so that none of this reaches another parser.
var chunkRules = []rule{
	{
		input: "A chunk extension, a blank or zeros at the size, either case", answer: "200, and core gets the bare body",
		rows: slices.Concat(
			passing(tellsWrite("{}"),
				chunks("2;a=b\r\n{}\r\n0\r\n\r\n"),
				chunks("2;a=\"b c\";d\r\n{}\r\n0;e\r\n\r\n"),
				chunks("2;a=\"\r\n{}\r\n0\r\n\r\n"), // the line ends where it ends, quotes or not
				chunks("2;"+strings.Repeat("a", 4096)+"\r\n{}\r\n0\r\n\r\n"),
				chunks("2 \r\n{}\r\n0\r\n\r\n"),
				chunks("2\t \r\n{}\r\n0\t\r\n\r\n"),
				chunks("002\r\n{}\r\n000\r\n\r\n"),
				chunks("1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"),
			),
			passing(tellsWrite("0123456789"),
				chunks("a\r\n0123456789\r\n0\r\n\r\n"),
				chunks("A\r\n0123456789\r\n0\r\n\r\n"),
			),
			passing(tellsWrite(""), chunks("0\r\n\r\n")),
		),
	},
	{
		input: "A chunk size that is signed, prefixed, empty, over 60 bits, or no hexadecimal number", answer: "400, closed",
		rows: refused(notHTTP(),
			chunks("0x2\r\n{}\r\n0\r\n\r\n"),
			chunks("+2\r\n{}\r\n0\r\n\r\n"),
			chunks("-2\r\n{}\r\n0\r\n\r\n"),
			chunks("-0\r\n\r\n"),
			chunks(" 2\r\n{}\r\n0\r\n\r\n"),
			chunks("\t2\r\n{}\r\n0\r\n\r\n"),
			chunks("2 2\r\n{}\r\n0\r\n\r\n"),
			chunks("2,\r\n{}\r\n0\r\n\r\n"),
			chunks("2_0\r\n{}\r\n0\r\n\r\n"),
			chunks("2.0\r\n{}\r\n0\r\n\r\n"),
			chunks("2 ;a\r\n{}\r\n0\r\n\r\n"),
			chunks("2\v\r\n{}\r\n0\r\n\r\n"),
			chunks("2\x00\r\n{}\r\n0\r\n\r\n"),
			chunks("2\xa0\r\n{}\r\n0\r\n\r\n"),
			chunks("\"2\"\r\n{}\r\n0\r\n\r\n"),
			chunks("g\r\n{}\r\n0\r\n\r\n"),
			chunks(";a\r\n{}\r\n0\r\n\r\n"),
			chunks("\r\n{}\r\n0\r\n\r\n"),
			chunks("{}\r\n0\r\n\r\n"),
			chunks("10000000000000000\r\n{}\r\n0\r\n\r\n"), // 2^64
			chunks("10000000000000002\r\n{}\r\n0\r\n\r\n"),
			chunks("FFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n"),
			chunks("0000000000000002\r\n{}\r\n0\r\n\r\n"),
		),
	},
	{
		input: "A chunk line that ends in LF or CR alone, a chunk longer or shorter than its size", answer: "400, closed",
		rows: refused(notHTTP(),
			chunks("2\n{}\r\n0\r\n\r\n"),
			chunks("2\n{}\n0\n\n"),
			chunks("2;a\n{}\r\n0\r\n\r\n"),
			chunks("2;a=\"\n\"\r\n{}\r\n0\r\n\r\n"),
			chunks("2\r{}\r\n0\r\n\r\n"),
			chunks("2;a\rb\r\n{}\r\n0\r\n\r\n"),
			chunks("2\r\r\n{}\r\n0\r\n\r\n"),
			chunks("2\r\n{}\n0\r\n\r\n"),
			chunks("2\r\n{}\r0\r\n\r\n"),
			chunks("2\r\n{}0\r\n\r\n"),
			chunks("2\r\n{}\n\n0\r\n\r\n"),
			chunks("1\r\n{}\r\n0\r\n\r\n"),
			chunks("3\r\n{}\r\n0\r\n\r\n"),
			chunks("0\n\r\n"),
			chunks("2\r\n{}\r\n0\n\r\n"),
		),
	},
	{
		input: "Trailers, announced or not", answer: "400, closed",
		rows: slices.Concat(
			refused(noTrailers,
				write(chunkedTE+"Trailer: X-Checksum\r\n", "0\r\nX-Checksum: a\r\n\r\n"),
				write(chunkedTE+"Trailer: X-Checksum\r\n", "0\r\n\r\n"),
				list("Trailer: X-Checksum\r\n"),
				chunks("2\r\n{}\r\n0\r\nX-Checksum: a\r\n\r\n"),
				chunks("0\r\nX-Checksum: a\r\n\r\n"),
				chunks("0\r\nX Checksum: a\r\n\r\n"),
				chunks("0\r\nX-Checksum : a\r\n\r\n"),
				chunks("0\r\nX-Checksum: a\n\r\n\r\n"),
				chunks("0\r\nX-Checksum: a\r\n b\r\n\r\n"),
				chunks("0\r\nIdempotency-Key: second\r\n\r\n"),
				chunks("0\r\nUser-Agent: second\r\n\r\n"),
				chunks("0\r\n"+withKey+"\r\n"),
				"POST /v2/tokens HTTP/1.1\r\nHost: a\r\n"+chunkedTE+"\r\n0\r\n"+withKey+"\r\n", // a key that no check before the body saw
				"POST /auth/x HTTP/1.1\r\nHost: a\r\n"+chunkedTE+"\r\n0\r\nOrigin: https://a\r\n\r\n",
			),
			refused(notHTTP(),
				chunks("0\r\nContent-Length: 2\r\n\r\n"),
				chunks("0\r\nTransfer-Encoding: chunked\r\n\r\n"),
				chunks("0\r\nHost: b\r\n\r\n"),
				chunks("0\r\nConnection: close\r\n\r\n"),
				chunks("0\r\nnonsense\r\n\r\n"),
				chunks("0\r\n: a\r\n\r\n"),
				chunks("0\r\n b: a\r\n\r\n"),
				chunks("0\r\nX-Checksum: \x00\r\n\r\n"),
			),
		),
	},
	{
		input: "Trailers longer than 8 KiB", answer: "431, closed",
		rows: refused(headersTooLong(), chunks("0\r\nX-Checksum: "+strings.Repeat("a", 9000)+"\r\n\r\n")),
	},
}
