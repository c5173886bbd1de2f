// Gradients that nodes ask for by name, in place of their op's own: the
// attribute `_gradient_op_type` (tf.custom_gradient, tf.RegisterGradient).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/hash_map.h"
#include "graph/graph.h"
#include "op/gradient.h"

namespace headrace {

inline constexpr StringView kGradientAttr = "_gradient_op_type";

using EdgeMap = HashMap<Edge, Edge>;

// Where a copied graph came from. A gradient may read values that its author
// had in hand when the node was recorded; they belong to the graph of then.
// Immutable once made. Holds no graph.
struct CopiedFrom {
  std::weak_ptr<Graph> graph;                 // what was copied
  std::shared_ptr<const EdgeMap> edges;       // its outputs -> the copy's
  std::shared_ptr<const CopiedFrom> earlier;  // what `graph` is a copy of
  // The gradient becomes a function with captures (gradient_function.h): eager
  // values that it reads may be captured, too.
  bool captures_values = false;

  // The copy of `v`, an output of one of the graphs; none for other values.
  std::optional<Edge> Find(const Value& v) const;
  bool IsOf(const Graph* original) const;
};
// By nodes of the copy that have named gradients.
class Origins : public HashMap<const Node*, std::shared_ptr<const CopiedFrom>> {
};

// Emits through the current emitter and sets g's results, as the gradient
// function of an op does. `copied` is null where the node is the one that was
// recorded, and else is where it came from. Called by any thread.
using NamedGradient =
    std::function<Status(GradientContext& g, const CopiedFrom* copied)>;

// Gives a name a gradient for the life of the process; AlreadyExists when it
// has one. Thread-safe.
Status RegisterNamedGradient(std::string name, NamedGradient gradient);
// The same for as long as the result lives, under a name that nothing has.
std::shared_ptr<void> KeepNamedGradient(const std::string& name,
                                        NamedGradient gradient);
// Asked for names that nobody registered, from any thread; null where it does
// not know the name either. Set once, at start (by the Python module).
using NamedGradientFinder = NamedGradient (*)(StringView name);
void SetNamedGradientFinder(NamedGradientFinder finder);

// The name that a call's gradient is asked by, or null.
const std::string* GradientNameOf(const ResolvedOp& op);
// Null where nothing has the name.
NamedGradient FindNamedGradient(StringView name);

// What `op` asks for by name: its attribute, or, where its type has no gradient
// of its own, what is registered under the type's name. Null where neither is
// found.
NamedGradient NamedGradientOf(const ResolvedOp& op);

// The gradient of `node`: the named one where it has one, else its op's. Calls
// of functions that name what nothing has (in graphs that TensorFlow wrote) are
// differentiated as calls; for other ops that is NotFound.
Status CallGradientOfNode(const Node& node, GradientContext& g,
                          const CopiedFrom* copied);

}  // namespace headrace
