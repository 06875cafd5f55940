package postgres_test

import "strings"

// sqlStates are the SQLSTATEs with which a statement can fail, by class, as appendix A of Postgres's manual has them. Behind a bar are
// those that a wrong statement or a wrong value has, and before it those of a database that cannot run the statement.
var sqlStates = map[string]string{
	"01": "000 003 004 006 007 008 00C P01 |", "02": "000 001 |", "03": "| 000", "08": "000 001 003 004 006 007 P01 |", "09": "| 000", "0A": "| 000",
	"0B": "| 000", "0F": "| 000 001", "0L": "000 P01 |", "0P": "000 |", "0Z": "| 000 002", "10": "| 608", "20": "| 000", "21": "| 000",
	"22": "| 000 001 002 003 004 005 007 008 009 00B 00C 00D 00F 00G 00H 00L 00M 00N 00S 00T 010 011 012 013 014 015 016 018 019 01B 01E 01F 01G " +
		"01W 01X 021 022 023 024 025 026 027 02E 02G 02H 030 031 032 033 034 035 036 037 038 039 03A 03B 03C 03D 03E 03F 03G P01 P02 P03 P04 P05 P06 P07",
	"23": "| 000 001 502 503 505 514 P01", "24": "| 000", "25": "006 P03 P04 | 000 001 002 003 004 005 007 008 P01 P02", "26": "000 |", "27": "| 000",
	"28": "000 P01 |", "2B": "000 P01 |", "2D": "| 000", "2F": "| 000 002 003 004 005", "34": "| 000", "38": "000 001 002 003 004 |",
	"39": "000 001 004 P01 P02 P03 |", "3B": "| 000 001", "3D": "000 |", "3F": "000 |", "40": "000 001 002 003 P01 |",
	"42": "501 P05 | 000 601 602 611 622 701 702 703 704 710 712 723 725 803 804 809 830 846 883 8C9 939 " +
		"P01 P02 P03 P04 P06 P07 P08 P09 P10 P11 P12 P13 P14 P15 P16 P17 P18 P19 P20 P21 P22",
	"44": "| 000", "53": "000 100 200 300 400 |", "54": "| 000 001 011 023", "55": "000 006 P02 P03 P04 |", "57": "000 014 P01 P02 P03 P04 P05 |",
	"58": "000 030 P01 P02 P03 |", "72": "000 |", "F0": "000 001 |",
	"HV": "000 001 002 004 005 006 007 008 009 00A 00B 00C 00D 00J 00K 00L 00M 00N 00P 00Q 00R 010 014 021 024 090 091 |",
	"P0": "| 000 001 002 003 004", "XX": "000 001 002 |",
	"ZZ": "ZZZ |", // of an extension, or of a version to come
}

// allSQLStates are the SQLSTATEs with which a statement can fail, each with whether the statement or its values are wrong.
func allSQLStates() map[string]bool {
	all := map[string]bool{}
	for class, states := range sqlStates {
		unavailable, wrong, _ := strings.Cut(states, "|")
		for state := range strings.FieldsSeq(unavailable) {
			all[class+state] = false
		}
		for state := range strings.FieldsSeq(wrong) {
			all[class+state] = true
		}
	}
	return all
}
