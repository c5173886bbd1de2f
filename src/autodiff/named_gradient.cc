#include "autodiff/named_gradient.h"

#include <atomic>
#include <utility>

#include "base/fork_mutex.h"
#include "base/mutex.h"
#include "op/no_such_gradient.h"
#include "op/registered_gradient.h"
#include "op/registry.h"

namespace headrace {
namespace {

struct Registry {
  ProcessMutex mutex;
  HashMap<std::string, NamedGradient> gradients ABSL_GUARDED_BY(mutex);
};
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}
std::atomic<NamedGradientFinder> the_finder{nullptr};

// What was registered under the name, or null.
NamedGradient Registered(StringView name) {
  Registry& r = TheRegistry();
  MutexLock lock(r.mutex);
  auto it = r.gradients.find(name);
  return it == r.gradients.end() ? nullptr : it->second;
}

// For values that are there: those of graphs go by CallGradientOfNode.
bool CallRegistered(GradientContext& g, Status* status) {
  const NamedGradient gradient = Registered(g.op().name());
  if (!gradient) return false;
  *status = gradient(g, nullptr);
  return true;
}
[[maybe_unused]] const bool tapes_ask = SetRegisteredGradients(CallRegistered);

// The op of that name where its gradient may be taken for that of `op`, as
// Graph.gradient_override_map({"Sign": "Identity"}) asks; else null. Gradients
// read the attributes that their own op has.
const OpDef* OpToPretend(const std::string& name, const ResolvedOp& op) {
  const OpDef* def = FindOp(name);
  if (def == nullptr || def->gradient_kind == GradientKind::kNone)
    return nullptr;
  for (const AttrDef& attr : def->attrs) {
    if (!op.attrs().Find(attr.name)) return nullptr;
  }
  return def;
}

}  // namespace

std::optional<Edge> CopiedFrom::Find(const Value& v) const {
  Edge e = EdgeOf(v);
  if (v.graph() != graph.lock()) {
    if (!earlier) return std::nullopt;
    std::optional<Edge> before = earlier->Find(v);
    if (!before) return std::nullopt;
    e = *before;
  }
  auto it = edges->find(e);
  if (it == edges->end()) return std::nullopt;
  return it->second;
}

bool CopiedFrom::IsOf(const Graph* original) const {
  return graph.lock().get() == original || (earlier && earlier->IsOf(original));
}

Status RegisterNamedGradient(std::string name, NamedGradient gradient) {
  Registry& r = TheRegistry();
  MutexLock lock(r.mutex);
  auto [it, added] = r.gradients.emplace(std::move(name), std::move(gradient));
  if (added) return OkStatus();
  return AlreadyExists("Registering two gradient with name '", it->first, "'!");
}

std::shared_ptr<void> KeepNamedGradient(const std::string& name,
                                        NamedGradient gradient) {
  {
    Registry& r = TheRegistry();
    MutexLock lock(r.mutex);
    r.gradients.insert_or_assign(name, std::move(gradient));
  }
  return std::shared_ptr<void>(nullptr, [name](void*) {
    NamedGradient last;  // what it holds goes without the lock
    Registry& r = TheRegistry();
    MutexLock lock(r.mutex);
    auto it = r.gradients.find(name);
    if (it == r.gradients.end()) return;
    last = std::move(it->second);
    r.gradients.erase(it);
  });
}

void SetNamedGradientFinder(NamedGradientFinder finder) {
  the_finder.store(finder);
}

const std::string* GradientNameOf(const ResolvedOp& op) {
  return op.attrs().Get<std::string>(kGradientAttr);
}

NamedGradient FindNamedGradient(StringView name) {
  // C++ first: asking Python takes its lock.
  if (NamedGradient registered = Registered(name)) return registered;
  NamedGradientFinder finder = the_finder.load();
  return finder ? finder(name) : nullptr;
}

NamedGradient NamedGradientOf(const ResolvedOp& op) {
  if (const std::string* name = GradientNameOf(op)) {
    return FindNamedGradient(*name);
  }
  // Python's RegisterGradient may name ops that have no gradient of their own;
  // those that have one are not looked up at every node.
  if (op.def().gradient_kind != GradientKind::kNone) return nullptr;
  return Registered(op.name());
}

Status CallGradientOfNode(const Node& node, GradientContext& g,
                          const CopiedFrom* copied) {
  if (NamedGradient gradient = NamedGradientOf(node.op())) {
    HR_RETURN_IF_ERROR(gradient(g, copied));
    return g.status();
  }
  const std::string* name = GradientNameOf(node.op());
  const bool named = name != nullptr && !node.def().Is(OpRole::kCall);
  if (!named && node.def().gradient_kind != GradientKind::kNone) {
    return CallGradient(g);
  }
  if (named) {
    if (const OpDef* def = OpToPretend(*name, node.op())) {
      if (def->gradient_kind == GradientKind::kNotDifferentiable) {
        return OkStatus();
      }
      HR_RETURN_IF_ERROR(def->gradient_fn(g));
      return g.status();
    }
  }
  return NoGradient(
      "No gradient defined for operation'", node.name(),
      "' (op type: ", node.def().name,
      "). In general every operation must have an associated "
      "`@tf.RegisterGradient` for correct autodiff, which this op is lacking. "
      "If you want to pretend this operation is a constant in your program, "
      "you may insert `tf.stop_gradient`. This can be useful to silence the "
      "error in cases where you know gradients are not needed, e.g. the "
      "forward pass of tf.custom_gradient. Please see more details in "
      "https://www.tensorflow.org/api_docs/python/tf/custom_gradient.");
}

}  // namespace headrace
