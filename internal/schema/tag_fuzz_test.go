package schema

import (
	"errors"
	"reflect"
	"testing"

	"github.com/rekindledb/rekindle/internal/fault"
)

// FuzzTag: any two tags give a valid table or a fault.Schema, never a panic.
// It goes around reflect.StructOf, which keeps every type for ever.
func FuzzTag(f *testing.F) {
	for _, tag := range []string{`rekindle:"x,pk"`, `rekindle:",pk=1,index=a:2,unique"`, `json:"a" rekindle:"-"`, `rekindle:"`, "rekindle:\"\xff,pk\""} {
		f.Add(tag, `rekindle:",pk=2,index=a:1"`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		def, err := tableOfTags(a, b)
		if err == nil {
			err = def.Validate()
		}
		if err != nil && !errors.Is(err, fault.ErrSchema) {
			t.Fatal(err)
		}
	})
}

func tableOfTags(tags ...string) (*Table, error) {
	list := fields{table: "t"}
	for i, text := range tags {
		tag, reason := parseTag(reflect.StructTag(text))
		if reason != "" {
			return nil, list.wrong("F", tag.name, reason)
		}
		field := reflect.StructField{Name: string(rune('A' + i)), Type: reflect.TypeFor[int]()}
		if err := list.addColumn(field, tag, field.Name, 0); err != nil {
			return nil, err
		}
	}
	return list.define()
}
