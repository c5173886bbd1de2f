// Copying a function's body with the calls in it written out.
#include "autodiff/function_gradient.h"
#include "autodiff/named_gradient.h"
#include "base/device_name.h"
#include "base/hash_map.h"
#include "base/mutex.h"

namespace headrace {
namespace {

// Calls within calls that are written out: as deep as plans write them
// (program.cc). Deeper ones, recursion above all, stay calls.
constexpr int kDeepest = 64;
// Nodes of bodies that are copied again; further calls stay calls, with
// gradients of their own. Bounds graphs whose functions call one another twice
// each, which would double level by level.
constexpr int64_t kMostAgain = 50'000;
constexpr int64_t kBodyCost = 8;  // in nodes: of a call, however small

using NodeMap = HashMap<const Node*, Node*>;

// Calls with gradients of their own stay calls.
bool IsPlainCall(const ResolvedOp& op) {
  if (!op.def().Is(OpRole::kCall)) return false;
  if (op.attrs().Find("_noinline")) return false;
  return !NamedGradientOf(op);
}

// A device's name, of which what it leaves open is as in `outer`.
std::string Within(const std::string& inner, const std::string& outer) {
  if (inner.empty() || outer.empty()) return inner.empty() ? outer : inner;
  DeviceName name, around;
  if (!DeviceName::Parse(inner, &name) || !DeviceName::Parse(outer, &around)) {
    return inner;
  }
  // (Another task has other devices.)
  const bool same = !name.job && !name.task;
  return name.OrElse(same ? around : around.Task()).ToString();
}

class Cloner {
 public:
  Cloner(Graph* to, const FunctionLibrary* library)
      : to_(to), library_(library) {}

  // Copies the nodes of `f`'s body but its arguments, which `edges` maps; what
  // their devices leave open is as in `device`, that of the call.
  Status Copy(const Function& f, const std::string& prefix,
              const std::shared_ptr<EdgeMap>& edges, int depth,
              const std::string& device) {
    HR_ASSIGN_OR_RETURN(std::vector<Node*> order, Order(*f.body));
    NodeMap nodes;
    const Origins* earlier = OriginsOf(f);
    for (Node* n : order) {
      if (edges->contains(Edge{n, 0}) && n->num_outputs() == 1 && IsArg(f, n)) {
        continue;
      }
      HR_RETURN_IF_ERROR(
          CopyNode(n, prefix, edges.get(), &nodes, depth, device));
      auto copy = nodes.find(n);
      if (copy == nodes.end() || !NamedGradientOf(n->op())) continue;
      auto from = std::make_shared<CopiedFrom>();
      from->graph = f.body;
      from->edges = edges;
      if (earlier) {
        auto it = earlier->find(n);
        if (it != earlier->end()) from->earlier = it->second;
      }
      (*origins_)[copy->second] = std::move(from);
    }
    return OkStatus();
  }

  const std::shared_ptr<Origins>& origins() const { return origins_; }

 private:
  static bool IsArg(const Function& f, const Node* n) {
    return std::find(f.args.begin(), f.args.end(), n) != f.args.end();
  }

  // Nodes in an order in which inputs come first (grown nodes may have inputs
  // with larger ids).
  static StatusOr<std::vector<Node*>> Order(const Graph& g) {
    std::vector<Node*> order;
    std::vector<char> state(g.num_nodes());  // 0 new, 1 open, 2 done
    // A stack of its own: graphs are longer than the thread's is deep.
    std::vector<std::pair<Node*, int>> stack;
    for (int i = 0; i < g.num_nodes(); ++i) {
      if (state[i]) continue;
      stack.push_back({g.node(i), 0});
      state[i] = 1;
      while (!stack.empty()) {
        auto& [n, next] = stack.back();
        int inputs = n->num_inputs();
        int all = inputs + static_cast<int>(n->control_inputs().size());
        if (next == all) {
          order.push_back(n);
          state[n->id()] = 2;
          stack.pop_back();
          continue;
        }
        Node* before = next < inputs ? n->input(next).node
                                     : n->control_inputs()[next - inputs];
        ++next;
        if (state[before->id()] == 1) {
          return InvalidArgument("Graph is invalid, contains a cycle at ",
                                 before->name());
        }
        if (state[before->id()] == 0) {
          state[before->id()] = 1;
          stack.push_back({before, 0});
        }
      }
    }
    return order;
  }

  Status CopyNode(Node* n, const std::string& prefix, EdgeMap* edges,
                  NodeMap* nodes, int depth, const std::string& device) {
    std::vector<Edge> inputs;
    for (const Edge& e : n->inputs()) inputs.push_back(edges->at(e));
    FunctionPtr f;
    if (IsPlainCall(n->op()) && depth < kDeepest) {
      HR_RETURN_IF_ERROR(CheckCall(n->op(), library_));
      HR_ASSIGN_OR_RETURN(
          f, FindFunction(library_, n->op().attr<FuncRef>("f").name));
      if (RunsApart(*f, to_->sandbox())) f = nullptr;
    }
    if (f) {
      // The first copy of each function is free, so that budgets never leave a
      // plain program with calls.
      if (!copied_.insert(f.get()).second) {
        again_ += kBodyCost + f->body->num_nodes();
        if (again_ > kMostAgain) f = nullptr;
      }
    }
    if (f) {
      auto inner = std::make_shared<EdgeMap>();
      for (size_t i = 0; i < inputs.size(); ++i) {
        (*inner)[Edge{f->args[i], 0}] = inputs[i];
      }
      HR_RETURN_IF_ERROR(Copy(*f, absl::StrCat(prefix, n->name(), "/"), inner,
                              depth + 1, Within(n->device(), device)));
      for (int i = 0; i < n->num_outputs(); ++i) {
        (*edges)[Edge{n, i}] = inner->at(f->results[i]);
      }
      return OkStatus();
    }
    std::vector<Node*> controls;
    for (Node* c : n->control_inputs()) {
      // Control inputs from nodes that became a written-out body are dropped
      // here: what the body does keeps its own order, and a gradient reads
      // values only.
      auto it = nodes->find(c);
      if (it != nodes->end()) controls.push_back(it->second);
    }
    HR_ASSIGN_OR_RETURN(
        Node * copy,
        to_->AddNode(to_->UniqueName(absl::StrCat(prefix, n->name())),
                     n->op_ptr(), inputs, controls));
    copy->set_device(Within(n->device(), device));
    for (int i = 0; i < n->num_outputs(); ++i) {
      copy->set_output_shape(i, n->output_shape(i));
      if (auto h = n->output_handle(i)) copy->set_output_handle(i, h);
      (*edges)[Edge{n, i}] = Edge{copy, i};
    }
    if (n->constant()) copy->set_constant(*n->constant());
    (*nodes)[n] = copy;
    return OkStatus();
  }

  Graph* to_;
  const FunctionLibrary* library_;
  HashSet<const Function*> copied_;
  int64_t again_ = 0;
  std::shared_ptr<Origins> origins_ = std::make_shared<Origins>();
};

}  // namespace

const Origins* OriginsOf(const Function& f) {
  MutexLock lock(f.derived_mutex);
  return f.derived.origins.get();
}

void ShareOrigins(const Function& from, const Function& to) {
  std::shared_ptr<const Origins> origins;
  {
    MutexLock lock(from.derived_mutex);
    origins = from.derived.origins;
  }
  MutexLock lock(to.derived_mutex);
  to.derived.origins = std::move(origins);
}

StatusOr<std::shared_ptr<Function>> CloneInlined(
    const Function& f, const FunctionLibrary* library) {
  const SandboxScope scope(f.body->sandbox());  // the copy's, too
  auto clone = std::make_shared<Function>();
  clone->body = std::make_shared<Graph>();
  clone->arg_names = f.arg_names;
  clone->result_names = f.result_names;
  clone->attrs = f.attrs;
  auto edges = std::make_shared<EdgeMap>();
  for (Node* n : f.args) {
    HR_ASSIGN_OR_RETURN(Node * copy,
                        clone->body->AddNode(clone->body->UniqueName(n->name()),
                                             n->op_ptr(), {}));
    copy->set_output_shape(0, n->output_shape(0));
    if (auto h = n->output_handle(0)) copy->set_output_handle(0, h);
    clone->args.push_back(copy);
    (*edges)[Edge{n, 0}] = Edge{copy, 0};
  }
  Cloner cloner(clone->body.get(), library);
  HR_RETURN_IF_ERROR(cloner.Copy(f, "", edges, 0, ""));
  for (const Edge& e : f.results) clone->results.push_back(edges->at(e));
  // Effects that `f` does not keep are not kept.
  const int nodes = f.control_outputs.empty() ? 0 : clone->body->num_nodes();
  for (int i = 0; i < nodes; ++i) {
    Node* n = clone->body->node(i);
    if (HasSideEffect(n->def())) clone->control_outputs.push_back(n);
  }
  if (!cloner.origins()->empty()) {
    MutexLock lock(clone->derived_mutex);
    clone->derived.origins = cloner.origins();
  }
  return clone;
}

}  // namespace headrace
