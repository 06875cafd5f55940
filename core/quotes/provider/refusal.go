package provider

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// noIntake is the error of a solver of the framework that takes no orders for now.
const noIntake = "SOLVER_INTAKE_DISABLED"

// aboutQuestion reports whether the body of a 5xx says what is wrong with the question, which says nothing of the provider's health: it has a text
// as error or code, as the framework's solver answers to a token that it does not know. What it says of its capacity is about itself.
func aboutQuestion(body []byte) bool {
	var answer struct {
		Error jsontext.Value `json:"error"`
		Code  jsontext.Value `json:"code"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return false
	}
	about := false
	for _, value := range []jsontext.Value{answer.Error, answer.Code} {
		var text string
		if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
			continue
		}
		if text = strings.ToUpper(text); text == noIntake || strings.Contains(text, "CAPACITY") {
			return false
		}
		about = about || text != ""
	}
	return about
}
