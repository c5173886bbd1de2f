// Attributes and op definitions as protos.
#pragma once

#include "op/op_def.h"

namespace tensorflow {
class AttrValue;
class OpDef;
}  // namespace tensorflow

namespace headrace {

// The value, read as `kind` (what the op declares); kNone takes the kind that
// the proto shows, an empty list as a list of ints. InvalidArgument with
// upstream's text when the proto holds another kind, or is malformed. A tensor
// that does not parse becomes one without elements: using it is the error.
StatusOr<AttrValue> AttrFromProto(const tensorflow::AttrValue& proto,
                                  AttrKind kind);
// Unimplemented for tensors that hold variants.
Status AttrToProto(const AttrValue& value, tensorflow::AttrValue* proto);

// What a writer of graphs says of an op, docs left out.
Status OpDefToProto(const OpDef& def, tensorflow::OpDef* proto);

}  // namespace headrace
