package schema

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// tagKey is the key of this package's struct tags.
const tagKey = "rekindle"

// tag is one field's parsed struct tag:
//
//	rekindle:"[name][,pk[=pos]][,index[=name[:pos]]][,unique[=name[:pos]]]"
//	rekindle:"-"
type tag struct {
	present bool
	skip    bool
	name    string // "" = derived from the field name
	entries []tagEntry
}

// tagEntry puts the column into an index.
type tagEntry struct {
	primary bool
	index   string // "" = named like the column
	unique  bool
	pos     int // from 1; 0 = not given
}

// parseTag returns the tag of a field, or the reason why it is wrong.
func parseTag(st reflect.StructTag) (t tag, reason string) {
	value, found, reason := lookupTag(string(st))
	if !found || reason != "" {
		return tag{}, reason
	}
	name, options, more := strings.Cut(value, ",")
	t = tag{present: true, name: name}
	if name == "-" {
		if more {
			return tag{}, `options after "-"`
		}
		t.skip = true
		return t, ""
	}
	for more {
		var option string
		option, options, more = strings.Cut(options, ",")
		entry, reason := parseOption(option)
		if reason != "" {
			return tag{}, reason
		}
		t.entries = append(t.entries, entry)
	}
	return t, ""
}

func parseOption(option string) (e tagEntry, reason string) {
	key, arg, hasArg := strings.Cut(option, "=")
	if hasArg && arg == "" {
		return e, fmt.Sprintf("option %q has nothing after =", option)
	}
	pos, hasPos := arg, hasArg
	switch key {
	case "pk":
		e = tagEntry{primary: true, index: PrimaryIndex, unique: true}
	case "index", "unique":
		e.unique = key == "unique"
		e.index, pos, hasPos = strings.Cut(arg, ":")
		if hasArg && e.index == "" {
			return e, fmt.Sprintf("option %q has no index name", option)
		}
	default:
		return e, fmt.Sprintf("unknown option %q", option)
	}
	if !hasPos {
		return e, ""
	}
	n, err := strconv.ParseUint(pos, 10, 16)
	if err != nil || n == 0 {
		return e, fmt.Sprintf("option %q: position %q is not a number from 1", option, pos)
	}
	e.pos = int(n)
	return e, ""
}

// lookupTag finds the value of this package's key. Unlike StructTag.Lookup it
// tells a tag that is not there from one that cannot be read: an index that is
// silently missing is worse than an error.
func lookupTag(st string) (value string, found bool, reason string) {
	for rest := strings.TrimLeft(st, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		if !ok || err != nil || quoted[0] != '"' {
			return value, found, malformedTag(st)
		}
		rest = after[len(quoted):]
		if key != tagKey {
			continue
		}
		if found {
			return "", false, fmt.Sprintf("two %s tags", tagKey)
		}
		found = true
		if value, err = strconv.Unquote(quoted); err != nil {
			return "", false, malformedTag(st)
		}
	}
	return value, found, ""
}

// malformedTag returns the reason for a tag that cannot be read, or "" when
// it is none of ours.
func malformedTag(st string) string {
	if !strings.Contains(st, tagKey) {
		return ""
	}
	return fmt.Sprintf("struct tag `%s` is not of the form key:\"value\"", st)
}

// snakeCase returns the default column name of a field: UserID → user_id,
// HTTPPort → http_port.
func snakeCase(field string) string {
	runes := []rune(field)
	var out strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				out.WriteByte('_')
			}
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}
