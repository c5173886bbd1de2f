// Arguments and attributes of ops as text: "x: N * T", "T: {float, double}".
#pragma once

#include "op/op_def.h"

namespace headrace {

// "NAME: TYPE", "NAME: N * TYPE", "NAME: Ref(TYPE)"; a TYPE that is no dtype
// names an attribute, which ResolveArgSpecs looks for. InvalidArgument for text
// of another form.
StatusOr<ArgDef> ParseArgSpec(StringView spec);
// "NAME: KIND [>= MINIMUM] [= DEFAULT]". Defaults are in the text form of
// protos.
StatusOr<AttrDef> ParseAttrSpec(StringView spec);

// Finds the attributes that the arguments name, and what these make of them:
// one tensor, or a list. InvalidArgument where one is not declared.
Status ResolveArgSpecs(OpDef* def);

// What upstream asks of an op besides: names of the right form that are no
// others', attributes of the right kind. Lists whose attribute has no minimum
// get that of 1.
Status CheckUsersOp(OpDef* def);

}  // namespace headrace
