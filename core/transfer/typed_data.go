package transfer

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

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
	// message is the message's JSON.
	message []byte
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

// newTypedData returns the typed data of a message whose members are those of its type.
func newTypedData(domain SigningDomain, primary *structType, m *structData) (*TypedData, error) {
	d := domain.data()
	if m.err != nil || d.err != nil {
		return nil, cmp.Or(m.err, d.err)
	}
	separator, message := d.hash(domain.kind()), m.hash(primary)
	return &TypedData{
		Digest: crypto.Keccak256Hash([]byte{0x19, 0x01}, separator[:], message[:]),
		domain: domain, primary: primary, message: m.json,
	}, nil
}

// Separator is the domain separator, which contracts tell as DOMAIN_SEPARATOR().
func (d SigningDomain) Separator() ([32]byte, error) {
	data := d.data()
	return data.hash(d.kind()), data.err
}

func (d SigningDomain) data() *structData {
	var data structData
	data.text("name", d.Name)
	if d.Version != "" {
		data.text("version", d.Version)
	}
	data.number("chainId", d.ChainID)
	data.address("verifyingContract", d.Contract)
	return &data
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
	b = append(b, `},"domain":{`...)
	b = append(b, t.domain.data().json...)
	b = append(b, `},"primaryType":`...)
	b = AppendText(b, t.primary.name)
	b = append(b, `,"message":{`...)
	b = append(b, t.message...)
	return append(b, `}}`...)
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

// structData are the values of a struct, encoded for its hash and as JSON at once, so that a wallet signs what is hashed. The members are added in
// the order of the type.
type structData struct {
	words, json []byte
	err         error
}

// hash is hashStruct of EIP-712.
func (d *structData) hash(t *structType) [32]byte { return crypto.Keccak256Hash(t.hash[:], d.words) }

func (d *structData) add(name string, w [32]byte) {
	if len(d.json) > 0 {
		d.json = append(d.json, ',')
	} else {
		const members = 9 // of the largest struct
		d.words, d.json = make([]byte, 0, members*word), make([]byte, 0, 1<<10)
	}
	d.json = append(AppendText(d.json, name), ':')
	d.words = append(d.words, w[:]...)
}

func (d *structData) text(name, text string) {
	d.add(name, crypto.Keccak256Hash([]byte(text)))
	d.json = AppendText(d.json, text)
}

func (d *structData) address(name, address string) {
	var w [word]byte
	d.err = cmp.Or(d.err, putAddress(w[:], address))
	d.add(name, w)
	d.json = AppendText(d.json, address)
}

// uint256 is a decimal string in JSON.
func (d *structData) uint256(name string, n *big.Int) {
	var w [word]byte
	d.err = cmp.Or(d.err, putBig(w[:], n))
	d.add(name, w)
	d.json = AppendDecimal(d.json, n)
}

// number is a number in JSON, for values below 2^53.
func (d *structData) number(name string, n uint64) {
	var w [word]byte
	putUint(w[:], n)
	d.add(name, w)
	d.json = strconv.AppendUint(d.json, n, 10)
}

func (d *structData) bytes32(name string, value [32]byte) {
	d.add(name, value)
	d.json = AppendHex(d.json, value[:])
}

func (d *structData) noBytes(name string) {
	d.add(name, noBytesHash)
	d.json = append(d.json, `"0x"`...)
}

var noBytesHash = crypto.Keccak256Hash()

func (d *structData) structure(name string, t *structType, value *structData) {
	d.err = cmp.Or(d.err, value.err)
	d.add(name, value.hash(t))
	d.json = append(append(append(d.json, '{'), value.json...), '}')
}

// list is an array of one struct.
func (d *structData) list(name string, t *structType, value *structData) {
	d.err = cmp.Or(d.err, value.err)
	hash := value.hash(t)
	d.add(name, crypto.Keccak256Hash(hash[:]))
	d.json = append(append(append(d.json, `[{`...), value.json...), `}]`...)
}
