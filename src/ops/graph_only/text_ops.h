// Ops that upstream's package for CPUs knows and has no kernel of. Graphs that
// hold them are read, shaped, differentiated and written; what runs them is
// told that there is no kernel, as upstream tells it.
#pragma once

#include "op/op.h"

namespace headrace {

// An op as texts: arguments and attributes as OpBuilder takes them, and the
// shapes of arguments; all are lists, with "; " between.
//
// A shape is "*" (any), "." (a scalar's) or sizes with blanks between: "?",
// numbers, "@attr" and names, each of one size throughout the call; "n#" is a
// name for each member of a list. Outputs may have sums, "a+b".
struct TextOp {
  const char* name;
  const char* inputs;
  const char* outputs;
  const char* attrs;
  const char* input_shapes;
  const char* output_shapes;
  bool stateful;
  const char* doc;
};

// The definition, without a kernel.
OpBuilder DefinitionOf(const TextOp& op);
// Each of them; at start. `ops` must live for ever.
bool RegisterTextOps(absl::Span<const TextOp> ops);

}  // namespace headrace
