package wire

// TransferUpdate is a body of PATCH /v2/transfers/{id}, a JSON Merge Patch (RFC 7396): what it does not name stays as it is.
type TransferUpdate struct {
	// Reference is nil to leave the reference, and empty to remove it.
	Reference *string
	// RemoveLabels removes all labels.
	RemoveLabels bool
	// Labels are the labels to set, with an empty value for those to remove.
	Labels map[string]string
}

var transferUpdateFields = []string{"reference", "labels"}

// DecodeTransferUpdate parses the body of PATCH /v2/transfers/{id} as strictly as DecodeTransferRequest, except that null removes what it stands for.
func DecodeTransferUpdate(body []byte) (TransferUpdate, []Issue) {
	d := newDecoder(body)
	defer d.release()
	u := TransferUpdate{}
	seen, ok := d.members(transferUpdateFields, func(n int) {
		isNull := !d.broken && d.in.PeekKind() == 'n'
		switch {
		case isNull && !d.next():
		case transferUpdateFields[n] == "reference":
			u.Reference = new(string)
			if !isNull {
				d.reference(u.Reference)
			}
		case isNull:
			u.RemoveLabels = true
		default:
			u.Labels = map[string]string{}
			d.eachLabel(func(key string) { d.labelChange(u.Labels, key) })
		}
	})
	if ok && seen == (seenNames{}) && len(d.issues) == 0 {
		d.issue("names nothing to change; give reference or labels")
	}
	return u, d.finish()
}

func (d *decoder) labelChange(labels map[string]string, key string) {
	if d.in.PeekKind() == 'n' {
		if d.next() {
			labels[key] = ""
		}
		return
	}
	if value, ok := d.labelValue(); ok {
		labels[key] = value
	}
}

// Update returns the labels after an update. ok is false if they would be more than MaxLabels.
func (l Labels) Update(u TransferUpdate) (updated Labels, ok bool) {
	if !u.RemoveLabels && len(u.Labels) == 0 {
		return l, true
	}
	pairs := map[string]string{}
	if !u.RemoveLabels {
		pairs = l.Pairs()
	}
	for key, value := range u.Labels {
		if value == "" {
			delete(pairs, key)
		} else {
			pairs[key] = value
		}
	}
	return NewLabels(pairs), len(pairs) <= MaxLabels
}
