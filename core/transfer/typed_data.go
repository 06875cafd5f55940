package transfer

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"

	"intents.internal/core/registry"
	"intents.internal/pkg/caip"
)

// TypedData is structured data that a wallet signs with eth_signTypedData_v4 (EIP-712).
type TypedData struct {
	// Digest is what the signature is of.
	Digest  [32]byte
	domain  SigningDomain
	primary *structType
	// domainJSON and message are JSON objects.
	domainJSON, message []byte
}

// SigningDomain is an EIP-712 domain: the contract that checks the signature. Version is empty where the contract has none.
type SigningDomain struct {
	Name, Version string
	ChainID       uint64
	// Contract is the verifyingContract.
	Contract string
}

// Domain is the domain that the data is signed in.
func (t *TypedData) Domain() SigningDomain { return t.domain }

// PrimaryType is the name of the message's type.
func (t *TypedData) PrimaryType() string { return t.primary.name }

// TokenDomain is the domain in which a token's holders sign.
func TokenDomain(token caip.AccountID, d registry.EIP712Domain) SigningDomain {
	number, _ := token.Chain.Number() // the registry has eip155 chains only
	return SigningDomain{Name: d.Name, Version: d.Version, ChainID: number, Contract: token.Address}
}

// newTypedData returns the typed data of a message with these members of its type.
func newTypedData(domain SigningDomain, primary *structType, members func(*structEncoder)) (*TypedData, error) {
	e := newStructEncoder()
	defer e.release()
	separator := e.hash(domain.kind(), domain.encode)
	domainEnd := len(e.json)
	message := e.hash(primary, members)
	if e.err != nil {
		return nil, e.err
	}
	e.words = append(append(append(e.words, 0x19, 0x01), separator[:]...), message[:]...)
	return &TypedData{
		Digest: e.keccak(0), domain: domain, primary: primary, domainJSON: e.json[:domainEnd:domainEnd], message: e.json[domainEnd:],
	}, nil
}

// Separator is the domain separator, which contracts tell as DOMAIN_SEPARATOR().
func (d SigningDomain) Separator() ([32]byte, error) {
	e := newStructEncoder()
	defer e.release()
	return e.hash(d.kind(), d.encode), e.err
}

func (d SigningDomain) encode(e *structEncoder) {
	e.text("name", d.Name)
	if d.Version != "" {
		e.text("version", d.Version)
	}
	e.number("chainId", d.ChainID)
	e.address("verifyingContract", d.Contract)
}

func (d SigningDomain) kind() *structType {
	if d.Version == "" {
		return domainWithoutVersion
	}
	return domainWithVersion
}

// AppendTypedData appends the parameter of eth_signTypedData_v4, or null for none.
func AppendTypedData(b []byte, t *TypedData) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"types":{`...)
	b = append(b, t.domain.kind().json...)
	b = append(b, ',')
	b = append(b, t.primary.json...)
	for _, r := range t.primary.refers {
		b = append(append(b, ','), r.json...)
	}
	b = append(b, `},"domain":`...)
	b = append(b, t.domainJSON...)
	b = append(b, `,"primaryType":`...)
	b = AppendText(b, t.primary.name)
	b = append(b, `,"message":`...)
	b = append(b, t.message...)
	return append(b, '}')
}

// structType is a struct type of EIP-712.
type structType struct {
	name string
	// declaration is encodeType without the types that it refers to, and json its member of "types".
	declaration string
	json        []byte
	// refers are the types of its members, and of theirs, in the order of encodeType.
	refers []*structType
	hash   [32]byte
}

// newStructType returns the type of a declaration such as "Mail(address to,string text)".
func newStructType(declaration string, refers ...*structType) *structType {
	name, members, _ := strings.Cut(strings.TrimSuffix(declaration, ")"), "(")
	t := &structType{name: name, declaration: declaration, refers: slices.Clone(refers)}
	for _, r := range refers {
		t.refers = append(t.refers, r.refers...)
	}
	slices.SortFunc(t.refers, func(a, b *structType) int { return strings.Compare(a.name, b.name) })
	t.refers = slices.Compact(t.refers)
	t.json = append(AppendText(t.json, name), `:[`...)
	for n, member := range strings.Split(members, ",") {
		kind, label, _ := strings.Cut(member, " ")
		if n > 0 {
			t.json = append(t.json, ',')
		}
		t.json = AppendText(append(t.json, `{"name":`...), label)
		t.json = append(AppendText(append(t.json, `,"type":`...), kind), '}')
	}
	t.json = append(t.json, ']')
	encodeType := []byte(declaration)
	for _, r := range t.refers {
		encodeType = append(encodeType, r.declaration...)
	}
	t.hash = crypto.Keccak256Hash(encodeType)
	return t
}

var (
	domainWithVersion    = newStructType("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
	domainWithoutVersion = newStructType("EIP712Domain(string name,uint256 chainId,address verifyingContract)")
)

// structEncoder encodes structs for their hashes and as JSON at once, so that a wallet signs what is hashed. The members of a struct are added in
// the order of its type.
type structEncoder struct {
	// words are what is not hashed yet: the type and the members so far of each struct that is being encoded, the outer ones first.
	words, json []byte
	err         error

	hasher crypto.KeccakState
	// sum is where the hasher writes to, which would allocate a variable for each hash.
	sum [32]byte
}

// structEncoders are those that nobody uses, without JSON.
var structEncoders = sync.Pool{New: func() any { return &structEncoder{hasher: crypto.NewKeccakState()} }}

// newStructEncoder returns an encoder, which the caller releases.
func newStructEncoder() *structEncoder {
	const jsonBytes = 1536 // of the largest message
	e := structEncoders.Get().(*structEncoder)
	e.words, e.json, e.err = e.words[:0], make([]byte, 0, jsonBytes), nil
	return e
}

// release keeps the encoder for the next one who needs any. Its JSON is the caller's.
func (e *structEncoder) release() {
	e.json = nil
	structEncoders.Put(e)
}

// hash encodes a struct as a JSON object and returns hashStruct of EIP-712.
func (e *structEncoder) hash(t *structType, members func(*structEncoder)) [32]byte {
	start := len(e.words)
	e.words = append(e.words, t.hash[:]...)
	e.json = append(e.json, '{')
	members(e)
	e.json = append(e.json, '}')
	return e.keccak(start)
}

// keccak hashes the words from one on, and removes them.
func (e *structEncoder) keccak(start int) [32]byte {
	e.hasher.Reset()
	e.hasher.Write(e.words[start:])
	_, _ = e.hasher.Read(e.sum[:]) // never fails
	e.words = e.words[:start]
	return e.sum
}

// name begins a member.
func (e *structEncoder) name(name string) {
	if e.json[len(e.json)-1] != '{' {
		e.json = append(e.json, ',')
	}
	e.json = append(AppendText(e.json, name), ':')
}

func (e *structEncoder) word(w [word]byte) { e.words = append(e.words, w[:]...) }

func (e *structEncoder) text(name, text string) {
	e.name(name)
	start := len(e.words)
	e.words = append(e.words, text...)
	e.word(e.keccak(start))
	e.json = AppendText(e.json, text)
}

func (e *structEncoder) address(name, address string) {
	var w [word]byte
	e.err = cmp.Or(e.err, putAddress(w[:], address))
	e.name(name)
	e.word(w)
	e.json = AppendText(e.json, address)
}

// uint256 is a decimal string in JSON.
func (e *structEncoder) uint256(name string, n *big.Int) {
	var w [word]byte
	e.err = cmp.Or(e.err, putBig(w[:], n))
	e.name(name)
	e.word(w)
	e.json = AppendDecimal(e.json, n)
}

// uint is uint256 of a smaller number.
func (e *structEncoder) uint(name string, n uint64) {
	e.name(name)
	e.words = appendUint(e.words, n)
	e.json = append(strconv.AppendUint(append(e.json, '"'), n, 10), '"')
}

// number is a number in JSON, for values below 2^53.
func (e *structEncoder) number(name string, n uint64) {
	e.name(name)
	e.words = appendUint(e.words, n)
	e.json = strconv.AppendUint(e.json, n, 10)
}

func (e *structEncoder) bytes32(name string, value [32]byte) {
	e.name(name)
	e.word(value)
	e.json = AppendHex(e.json, value[:])
}

func (e *structEncoder) noBytes(name string) {
	e.name(name)
	e.word(noBytesHash)
	e.json = append(e.json, `"0x"`...)
}

var noBytesHash = crypto.Keccak256Hash()

func (e *structEncoder) structure(name string, t *structType, members func(*structEncoder)) {
	e.name(name)
	e.word(e.hash(t, members))
}

// list is an array of one struct.
func (e *structEncoder) list(name string, t *structType, members func(*structEncoder)) {
	e.name(name)
	start := len(e.words)
	e.json = append(e.json, '[')
	e.word(e.hash(t, members))
	e.json = append(e.json, ']')
	e.word(e.keccak(start))
}
