package api

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// optional is a string parameter of which "" and absent are two things.
type optional struct {
	value string
	set   bool
}

// Schema implements huma.SchemaProvider.
func (optional) Schema(r huma.Registry) *huma.Schema { return huma.SchemaFromType(r, typeOf[string]()) }

// Receiver implements huma.ParamWrapper.
func (o *optional) Receiver() reflect.Value { return reflect.ValueOf(&o.value).Elem() }

// OnParamSet implements huma.ParamReactor.
func (o *optional) OnParamSet(isSet bool, _ any) { o.set = isSet }

// anyJSON is a value of any JSON type.
type anyJSON struct{}

// Schema implements huma.SchemaProvider.
func (anyJSON) Schema(huma.Registry) *huma.Schema { return &huma.Schema{} }

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
