package condition

import (
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"strings"

	"github.com/recolabs/gnata"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// What one call of a function over texts may take: nothing asks the budget while the
// library is within one of its own functions.
const (
	maxWork    = 1 << 28  // characters times instructions of a regular expression
	maxText    = 16 << 20 // bytes that $join, $replace and $string make, roughly
	maxPicture = 1000     // bytes of how a number or a time is to be written
	maxCounted = 1 << 15  // bytes of a text whose characters $match and $replace count, from the start for each match
)

// How large a regular expression may be once it is compiled.
const (
	maxInstructions = 1000
	maxGroups       = 30
)

// guardedFunctions are the functions whose results, or work, can be far larger than what they
// are given.
func guardedFunctions() map[string]func(args []any) error {
	return map[string]func([]any) error{"contains": checkSearchable, "split": checkSearchable, "match": checkCountable, "replace": checkReplaceable, "join": checkJoinable, "string": checkWritable, "distinct": checkWritable,
		"formatInteger": checkPicture, "formatNumber": checkPicture, "fromMillis": checkPicture, "toMillis": checkPicture}
}

// guardFunctions puts a check before each of the guarded functions of an environment. The
// library doesn't export the types of its functions.
func guardFunctions(b *budget, env interface {
	Lookup(name string) (any, bool)
	Bind(name string, value any)
},
) {
	for name, check := range guardedFunctions() {
		was, ok := env.Lookup(name)
		fn := reflect.ValueOf(was)
		if !ok || fn.Kind() != reflect.Func || fn.Type().NumIn() == 0 || fn.Type().NumOut() != 2 {
			continue
		}
		env.Bind(name, reflect.MakeFunc(fn.Type(), func(in []reflect.Value) []reflect.Value {
			args, _ := in[0].Interface().([]any)
			if err := check(args); err != nil {
				b.err = fmt.Errorf("%w: $%s %w", ErrTooLarge, name, err)
				return []reflect.Value{reflect.Zero(fn.Type().Out(0)), reflect.ValueOf(&b.err).Elem()}
			}
			return fn.Call(in)
		}).Interface())
	}
}

// textAt is an argument that is text.
func textAt(args []any, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	s, ok := args[i].(string)
	return s, ok
}

// expressionAt is an argument that is a regular expression; nil: it is none, or one
// that the library will refuse.
func expressionAt(args []any, i int) *syntax.Regexp {
	if i >= len(args) {
		return nil
	}
	m, ok := gnata.NormalizeValue(args[i]).(map[string]any)
	if !ok {
		return nil
	}
	pattern, _ := m["pattern"].(string)
	flags, _ := m["flags"].(string)
	return parsePattern(pattern, flags)
}

func parsePattern(pattern, flags string) *syntax.Regexp {
	if set := strings.Trim(flags, "gxu"); set != "" {
		pattern = "(?" + set + ")" + pattern
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return re
}

// countInstructions is how large a regular expression is compiled.
func countInstructions(re *syntax.Regexp) int {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}

// checkSearchable: a regular expression takes up to all of its instructions for each
// character, and keeps all groups of each match.
func checkSearchable(args []any) error {
	text, _ := textAt(args, 0)
	re := expressionAt(args, 1)
	if re == nil {
		return nil
	}
	if n := countInstructions(re); len(text)*n > maxWork {
		return fmt.Errorf("can't search %d bytes with a regular expression of %d instructions: take a part of the text by $substring", len(text), n)
	}
	if n := re.MaxCap() + 1; len(text)*(24+16*n) > maxMemory {
		return fmt.Errorf("can't search %d bytes for %d groups: use fewer groups", len(text), n)
	}
	return nil
}

// checkCountable: for each match the library counts the characters before it.
func checkCountable(args []any) error {
	if text, _ := textAt(args, 0); len(text) > maxCounted {
		return fmt.Errorf("can't search %d bytes; the limit is %d: take a part of the text by $substring", len(text), maxCounted)
	}
	return checkSearchable(args)
}

// checkReplaceable: each match becomes the replacement, in which each $ can stand for all
// of the match.
func checkReplaceable(args []any) error {
	text, _ := textAt(args, 0)
	with, _ := textAt(args, 2)
	if len(text)*(len(with)+1) > maxText {
		return fmt.Errorf("can't put %d bytes in the place of each match in %d bytes: take a part of the text by $substring", len(with), len(text))
	}
	return checkCountable(args)
}

// checkJoinable: the separator comes between all.
func checkJoinable(args []any) error {
	if len(args) == 0 {
		return nil
	}
	between, _ := textAt(args, 1)
	list, _ := gnata.NormalizeValue(args[0]).([]any)
	return weighAll(args, len(list)*len(between))
}

// checkWritable: a value can hold the same part many times, and is written out with each.
func checkWritable(args []any) error { return weighAll(args, 0) }

func weighAll(args []any, more int) error {
	left := maxText - more
	for _, v := range args {
		weighValue(reflect.ValueOf(v), 0, &left)
	}
	if left < 0 {
		return fmt.Errorf("takes at most %d MB of values (& calls $string): take a part of them", maxText>>20)
	}
	return nil
}

// widePicture has a width of five digits.
var widePicture = lazyregexp.New(`,[\s+]*\d[\s\d]{4}`)

// checkPicture: the library writes as many digits as a picture asks for.
func checkPicture(args []any) error {
	picture, ok := textAt(args, 1)
	if !ok {
		return nil
	}
	roman := strings.HasPrefix(strings.ToLower(picture), "i")
	if n, _ := numberOf(args[0]); len(picture) > maxPicture || widePicture.MatchString(picture) || roman && n > 1e6 {
		return errors.New("would write too many characters: shorten the picture or the number")
	}
	return nil
}

// maxDepth is how deep a value is looked into. What doubles with each level is too
// large long before.
const maxDepth = 100

// weighValue takes from left what a value is as text, roughly, until nothing is left. The
// values are the library's own, whose types it doesn't export.
func weighValue(v reflect.Value, depth int, left *int) {
	if *left -= 8 + 2*depth; depth > maxDepth { // $string indents
		*left = -1
	}
	if *left < 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Interface:
		weighValue(v.Elem(), depth, left)
	case reflect.Pointer:
		if name := v.Type().Elem().Name(); name == "OrderedMap" || name == "Sequence" {
			weighValue(v.Elem(), depth, left)
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && *left >= 0; i++ {
			weighValue(v.Index(i), depth+1, left)
		}
	case reflect.Map:
		for it := v.MapRange(); *left >= 0 && it.Next(); {
			weighValue(it.Value(), depth+1, left)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && *left >= 0; i++ {
			weighValue(v.Field(i), depth+1, left)
		}
	}
}

// tooLarge says what is too large about a regular expression as it is written, with
// its slashes; empty: nothing.
func tooLarge(written string) string {
	end := strings.LastIndexByte(written, '/')
	re := parsePattern(written[1:end], written[end+1:])
	if re == nil {
		return ""
	}
	if n := countInstructions(re); n > maxInstructions {
		return fmt.Sprintf("the regular expression is too large: %d instructions, the limit is %d", n, maxInstructions)
	}
	if n := re.MaxCap(); n > maxGroups {
		return fmt.Sprintf("the regular expression has %d groups; the limit is %d", n, maxGroups)
	}
	return ""
}
