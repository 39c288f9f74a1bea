package node

import (
	"maps"
	"sync"
)

// metaSchema is the payload of the peers' meta-schema: the type of every schema,
// and of itself. Schemas are never checked against it: CheckSchema
// decides.
const metaSchema = `{"type":"object","additionalProperties":false,"description":"ocas JSON Schema meta-schema","properties":{
"type":{"anyOf":[{"type":"string","enum":["string","number","integer","boolean","object","array","null"]},{"type":"array","items":{"type":"string","enum":["string","number","integer","boolean","object","array","null"]}}]},
"properties":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false}},
"required":{"type":"array","items":{"type":"string"}},
"additionalProperties":{"anyOf":[{"type":"boolean"},{"type":"object","additionalProperties":false}]},
"anyOf":{"type":"array","items":{"type":"object","additionalProperties":false}},
"oneOf":{"type":"array","items":{"type":"object","additionalProperties":false}},
"items":{"type":"object","additionalProperties":false},
"format":{"type":"string"},
"title":{"type":"string"},
"enum":{"type":"array"},
"const":{},
"description":{"type":"string"},
"minimum":{"type":"number"},
"maximum":{"type":"number"},
"exclusiveMinimum":{"type":"number"},
"exclusiveMaximum":{"type":"number"},
"minLength":{"type":"number"},
"maxLength":{"type":"number"},
"pattern":{"type":"string"},
"minItems":{"type":"number"},
"maxItems":{"type":"number"},
"uniqueItems":{"type":"boolean"},
"allOf":{"type":"array","items":{"type":"object","additionalProperties":false}},
"if":{"type":"object","additionalProperties":false},
"then":{"type":"object","additionalProperties":false},
"else":{"type":"object","additionalProperties":false},
"patternProperties":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false}},
"prefixItems":{"type":"array","items":{"type":"object","additionalProperties":false}},
"multipleOf":{"type":"number"},
"minProperties":{"type":"number"},
"maxProperties":{"type":"number"},
"default":{},
"not":{"type":"object","additionalProperties":false},
"contains":{"type":"object","additionalProperties":false},
"propertyNames":{"type":"object","additionalProperties":false},
"examples":{"type":"array"},
"readOnly":{"type":"boolean"},
"writeOnly":{"type":"boolean"},
"deprecated":{"type":"boolean"},
"$comment":{"type":"string"}
}}`

// jsonTypes are the types of JSON Schema.
var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// Builtin are the nodes that every store has without keeping them: the
// meta-schema and the schemas of JSON's seven types. Their timestamps are 0.
// Payloads are shared; don't change them.
func Builtin() map[Hash]Node { return maps.Clone(builtin()) }

var builtin = sync.OnceValue(func() Map {
	out := Map{}
	if meta, err := ParseJSON([]byte(metaSchema)); err == nil { // a constant; tests read it
		out[MetaSchema] = Node{Type: MetaSchema, Payload: meta}
	}
	for _, t := range jsonTypes {
		p := map[string]any{"type": t}
		if h, err := HashOf(MetaSchema, p); err == nil {
			out[h] = Node{Type: MetaSchema, Payload: p}
		}
	}
	return out
})
