package protocol

import "strings"

// A Language tells what a peer is written in.
type Language byte

// The languages of the protocol. Servers say Java: old clients know no others well.
const (
	LanguageJava Language = iota
	LanguageCPP
	LanguageDotnet
	LanguagePython
	LanguageDelphi
	LanguageErlang
	LanguageRuby
	LanguageOther
	LanguageHTTP
	LanguageGo
	LanguagePHP
	LanguageOMS
	LanguageRust
	LanguageNodeJS

	// LanguageUnknown is a language that was not given or has no name here. It is
	// left out of a JSON header and is OTHER in a binary one.
	LanguageUnknown Language = 0xFF
)

var languageNames = [...]string{
	"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
}

// String gives the name on the wire, or "UNKNOWN".
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return "UNKNOWN"
}

// ParseLanguage finds a language by its name in any case of letters.
func ParseLanguage(name string) Language {
	for i, n := range languageNames {
		if strings.EqualFold(n, name) {
			return Language(i)
		}
	}
	return LanguageUnknown
}

// languageOf is ParseLanguage for the scanner: the common names without a loop.
func languageOf(name []byte) Language {
	switch string(name) {
	case "JAVA":
		return LanguageJava
	case "GO":
		return LanguageGo
	case "CPP":
		return LanguageCPP
	}
	return ParseLanguage(string(name))
}
