// Ops that are another op in an older form: another name, handles that are
// references.
#pragma once

#include "op/op_def.h"
#include "op/shape_context.h"

namespace headrace {

// Registers `name`: the op `of`, which stands before it in the same file, but
// for what `change` does to the definition. True, for a variable at namespace
// scope.
bool RegisterLike(const char* name, const char* of,
                  void (*change)(OpDef& def) = nullptr);

// Handles are references to strings instead of resources, which at run time are
// the same. What takes one is not marked as stateful then, as upstream has it.
// (So a kernel that keeps an input must make its outputs itself: see
// planner.cc.)
void ByReference(OpDef& def);

// Shape rule of what makes such a handle: graphs take it for a container and a
// name.
Status ReferenceShape(ShapeContext& c);

}  // namespace headrace
