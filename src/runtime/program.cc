#include "runtime/program.h"

#include <algorithm>
#include <queue>

#include "base/cancellation.h"
#include "base/hash_map.h"
#include "graph/at_node.h"
#include "graph/needed_nodes.h"
#include "op/processor.h"
#include "op/registry.h"
#include "op/rendezvous.h"
#include "op/shape_context.h"
#include "runtime/frame_graph.h"
#include "runtime/frames.h"
#include "runtime/references.h"
#include "runtime/stateful_kernels.h"

namespace headrace {
namespace {

constexpr int kDeepestInlining = 64;  // recursion is left to real calls
constexpr int64_t kBodyCost = 8;      // of a body, in nodes
// Calls between looks at cancellation: some milliseconds of planning.
constexpr size_t kLookEvery = 1024;

// The innermost nodes are named, however deep functions call each other.
constexpr size_t kLongestMessage = 16 << 10;

using Mapping = HashMap<Edge, ValueId>;

// Nothing behind edges that have their values is needed.
auto NotIn(const Mapping& fed) {
  return [&fed](const Edge& e) { return !fed.contains(e); };
}

bool InputsComeFirst(const std::vector<Node*>& nodes) {
  for (Node* n : nodes) {
    for (const Edge& e : n->inputs()) {
      if (e.node && e.node->id() > n->id()) return false;
    }
    for (Node* c : n->control_inputs()) {
      if (c->id() > n->id()) return false;
    }
  }
  return true;
}

// Puts nodes after what they need, otherwise by id.
Status Sort(std::vector<Node*>* nodes, const Mapping& fed) {
  // Nearly always: ids grow as nodes are added. Only grown nodes and imports
  // with loops back differ.
  if (InputsComeFirst(*nodes)) return OkStatus();
  HashMap<const Node*, int> waiting;
  HashMap<const Node*, std::vector<Node*>> users;
  for (Node* n : *nodes) waiting[n] = 0;
  for (Node* n : *nodes) {
    auto needs = [&](Node* before) {
      if (!waiting.contains(before)) return;
      ++waiting[n];
      users[before].push_back(n);
    };
    for (const Edge& e : n->inputs()) {
      if (e.node && !fed.contains(e)) needs(e.node);
    }
    for (Node* c : n->control_inputs()) needs(c);
  }
  auto later = [](Node* a, Node* b) { return a->id() > b->id(); };
  std::priority_queue<Node*, std::vector<Node*>, decltype(later)> ready(later);
  for (Node* n : *nodes) {
    if (waiting[n] == 0) ready.push(n);
  }
  std::vector<Node*> sorted;
  while (!ready.empty()) {
    Node* n = ready.top();
    ready.pop();
    sorted.push_back(n);
    for (Node* u : users[n]) {
      if (--waiting[u] == 0) ready.push(u);
    }
  }
  if (sorted.size() != nodes->size()) {
    return InvalidArgument("Graph is invalid, contains a cycle with ",
                           nodes->size() - sorted.size(), " nodes");
  }
  *nodes = std::move(sorted);
  return OkStatus();
}

// More ends of edges than these are followed node by node: a plan would run
// them one by one (wait_order.cc), and tasks then wait for each other.
constexpr int kMostReceives = 1000;

bool RunsInFrames(const std::vector<Node*>& nodes) {
  int receives = 0;
  for (const Node* n : nodes) {
    if (MayBeDead(*n)) return true;
    receives += n->def().Is(kReceiveRole);
  }
  return receives > kMostReceives;
}

// Finds calls that meet others, also in functions that nodes call.
class MeetingFinder {
 public:
  explicit MeetingFinder(const FunctionLibrary* library) : library_(library) {}
  bool AnyOf(absl::Span<Node* const> nodes) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const Node* n) { return Meets(n->op()); });
  }

 private:
  bool Meets(const ResolvedOp& op) {
    if (op.def().Has(kMeetsOthers)) return true;
    if (!CallsFunctions(op.def())) return false;
    for (const auto& [name, value] : op.attrs()) {
      if (const auto* f = std::get_if<FuncRef>(&value)) {
        if (InFunction(*f)) return true;
      } else if (const auto* all = std::get_if<std::vector<FuncRef>>(&value)) {
        for (const FuncRef& f : *all) {
          if (InFunction(f)) return true;
        }
      }
    }
    return false;
  }
  // False for those that were looked at: they are called here, too.
  bool InFunction(const FuncRef& ref) {
    const StatusOr<FunctionPtr> f = FindFunction(library_, ref.name);
    if (!f.ok() || !seen_.insert(f->get()).second) return false;
    const Graph& body = *(*f)->body;
    for (int i = 0; i < body.num_nodes(); ++i) {
      if (Meets(body.node(i)->op())) return true;
    }
    return false;
  }

  const FunctionLibrary* const library_;
  HashSet<const Function*> seen_;
};

class Writer {
 public:
  // `asked`: calls that are made even if nobody reads their results.
  // `waits`: null where calls run one by one.
  Writer(Program* p, const FunctionLibrary* library, PlanBudget* budget,
         HashSet<const Node*> asked, WaitTracker* waits, bool is_body)
      : p_(p),
        library_(library),
        budget_(budget),
        asked_(std::move(asked)),
        waits_(waits),
        graph_body_{.serial = is_body} {}

  // The value of the variable behind reference `v`, the output `e`, read at
  // this place of the program.
  StatusOr<ValueId> ReadReference(ValueId v, const Edge& e,
                                  const std::string& reader) {
    const DType type = BaseType(e.node->output_type(e.index));
    Call call;
    HR_ASSIGN_OR_RETURN(call.op, ReaderOfReference(type));
    call.inputs = {v};
    call.outputs = {p_->NewValue(type, e.node->output_shape(e.index))};
    call.name = reader;
    call.behind = behind_;
    ValueId out = call.outputs[0];
    p_->calls.push_back(std::move(call));
    return out;
  }

  Status Write(absl::Span<Node* const> nodes, Mapping* map, int depth) {
    for (const Node* n : nodes) {
      waited_.insert(n->control_inputs().begin(), n->control_inputs().end());
    }
    for (Node* n : nodes) {
      if (waits_) behind_ = waits_->BehindOf(*body_, *n);
      HR_RETURN_IF_ERROR(WriteNode(n, map, depth));
    }
    return OkStatus();
  }
  // What is read behind all nodes.
  void EndNodes() { behind_.clear(); }

 private:
  Status WriteNode(Node* n, Mapping* map, int depth) {
    if (map->contains(Edge{n, 0}) && n->num_outputs() == 1) return OkStatus();
    if (n->def().Is(OpRole::kPlaceholder) && n->num_inputs() == 0) {
      return InvalidArgument(
          "You must feed a value for placeholder tensor '", n->name(),
          "' with dtype ", DTypeName(n->output_type(0)), " and shape ",
          n->output_shape(0).ToString(), "\n\t [[{{node ", n->name(), "}}]]");
    }
    absl::InlinedVector<ValueId, 4> inputs;
    for (const Edge& e : n->inputs()) {
      auto it = map->find(e);
      if (it == map->end()) {
        return Internal("node ", n->name(), " has an input without a value");
      }
      ValueId v = it->second;
      if (IsRef(p_->values[v].dtype)) {
        if (!TakesReference(n->op(), static_cast<int>(inputs.size()))) {
          aliases_.Read(*n, e);
          HR_ASSIGN_OR_RETURN(v, ReadReference(v, e, n->name()));
        } else if (HasSideEffect(n->def())) {
          aliases_.Write(*n, e);
        }
      } else if (const std::optional<Edge> now = aliases_.Stale({n}, e)) {
        auto ref = map->find(*now);
        if (ref != map->end()) {
          HR_ASSIGN_OR_RETURN(v,
                              ReadReference(ref->second, *now, e.node->name()));
        }
      }
      inputs.push_back(v);
    }
    if (n->def().Is(OpRole::kCall) && depth < kDeepestInlining &&
        !n->op().attrs().Find("_noinline")) {
      return WriteBody(n, inputs, map, depth);
    }
    return WriteCall(n, inputs, map);
  }

  Status WriteCall(Node* n, absl::Span<const ValueId> inputs, Mapping* map) {
    if (p_->calls.size() % kLookEvery == 0) {
      HR_RETURN_IF_ERROR(CheckTokens());
    }
    Call call;
    HR_ASSIGN_OR_RETURN(call.op, NamedOp(*n));
    call.inputs.assign(inputs.begin(), inputs.end());
    if (auto* kernels = StatefulKernelsScope::current()) {
      call.kernel = kernels->Of(*n, *call.op);
    }
    call.name = n->name();
    // A target runs for what it may refuse, though nobody reads it.
    call.effect = HasSideEffect(n->def()) || asked_.contains(n);
    call.whole = asked_.contains(n) || waited_.contains(n);
    if (n->def().Has(kMeetsOthers)) {
      HR_RETURN_IF_ERROR(PutOnProcessor(*n, &call));
    }
    if (waits_) {
      if (waits_->MayWait(n->op())) call.waiter = waits_->Add(*n, &behind_);
      call.behind = behind_;
      waits_->Wrote(body_, *n, behind_, call.waiter);
    }
    for (int i = 0; i < n->num_outputs(); ++i) {
      // What runs is a reference, a scalar handle; its shape is the variable's.
      const DType type = n->output_type(i);
      ValueId v =
          p_->NewValue(type, IsRef(type) ? Shape() : n->output_shape(i));
      call.outputs.push_back(v);
      // A fed output keeps its feed; the call may still serve the others.
      map->emplace(Edge{n, i}, v);
    }
    if (n->def().Is(OpRole::kConstant)) {
      const Tensor& value = n->op().attr<Tensor>("value");
      if (!value.has_buffer()) {
        return InvalidArgument(
            "Cannot parse tensor from proto: ", value.Describe(),
            "\n\t [[{{node ", n->name(), "}}]]");
      }
      p_->values[call.outputs[0]].constant = value;
      return OkStatus();
    }
    p_->calls.push_back(std::move(call));
    return OkStatus();
  }

  // Its kernel knows the device of the node, or of the call that it is part of.
  Status PutOnProcessor(const Node& n, Call* call) const {
    const int index = ProcessorNamed(n.device()).value_or(processor_);
    if (index < 0) return OkStatus();  // that of who runs it
    HR_ASSIGN_OR_RETURN(auto kernel, BindKernel(*call->op));
    call->kernel = OnProcessor(std::move(kernel), index);
    return OkStatus();
  }

  Status WriteBody(Node* n, absl::Span<const ValueId> inputs, Mapping* map,
                   int depth) {
    const FuncRef& ref = n->op().attr<FuncRef>("f");
    StatusOr<FunctionPtr> found = FindFunction(library_, ref.name);
    if (!found.ok()) {
      return InvalidArgument("Failed to find function \"", ref.name,
                             "\" in function library:");
    }
    const FunctionPtr& f = *found;
    Status fits = CheckCall(n->op(), library_);
    if (!fits.ok()) return AtNode(fits, n->name());
    HR_RETURN_IF_ERROR(CheckTokens());
    Mapping inner;
    for (size_t i = 0; i < inputs.size(); ++i) {
      inner[Edge{f->args[i], 0}] = inputs[i];
    }
    std::vector<Node*> nodes =
        NeededNodes(f->results, f->control_outputs, NotIn(inner));
    // A body that runs in frames, or in another sandbox, has an executable of
    // its own.
    if (RunsInFrames(nodes) || RunsApart(*f, p_->sandbox) ||
        !budget_->Spend(*f, nodes.size())) {
      return WriteCall(n, inputs, map);
    }
    HR_RETURN_IF_ERROR(Sort(&nodes, inner));
    HR_RETURN_IF_ERROR(WriteNodes(n, nodes, &inner, depth + 1));
    for (int i = 0; i < n->num_outputs(); ++i) {
      (*map)[Edge{n, i}] = inner.at(f->results[i]);
    }
    return OkStatus();
  }

  // Those of the body that call `n` runs.
  Status WriteNodes(const Node* n, absl::Span<Node* const> nodes, Mapping* map,
                    int depth) {
    const int processor = processor_;
    if (const auto named = ProcessorNamed(n->device())) processor_ = *named;
    WaitTracker::Body inner{.serial = true, .entry = behind_};
    WaitTracker::Body* const outer = std::exchange(body_, &inner);
    Status s = Write(nodes, map, depth);
    body_ = outer;
    processor_ = processor;
    if (waits_) waits_->WroteBody(outer, *n, inner);
    return s;
  }

  Program* p_;
  const FunctionLibrary* library_;
  PlanBudget* budget_;
  const HashSet<const Node*> asked_;
  HashSet<const Node*> waited_;  // by others of the graph
  WaitTracker* const waits_;
  WaitTracker::Body graph_body_;
  WaitTracker::Body* body_ = &graph_body_;
  WaitSet behind_;      // of the node that is written
  int processor_ = -1;  // of the call that is written out
  ReferenceAliases aliases_;
};

// True for a node that does nothing but wait for others.
bool OnlyWaits(const Node& n) {
  return n.num_inputs() == 0 && n.num_outputs() == 0 && !n.def().is_stateful;
}

// The targets, and what targets that only wait (groups) wait for: a run of them
// may fail, whether or not anything reads what they make.
HashSet<const Node*> AskedFor(absl::Span<Node* const> targets) {
  HashSet<const Node*> asked;
  std::vector<Node*> open(targets.begin(), targets.end());
  while (!open.empty()) {
    Node* n = open.back();
    open.pop_back();
    if (!asked.insert(n).second || !OnlyWaits(*n)) continue;
    open.insert(open.end(), n->control_inputs().begin(),
                n->control_inputs().end());
  }
  return asked;
}

}  // namespace

bool PlanBudget::Spend(const Function& f, size_t nodes) {
  if (seen_.insert(&f).second) return true;
  left_ -= kBodyCost + static_cast<int64_t>(nodes);
  return left_ >= 0;
}

Status BindCall(Call& call) {
  if (call.kernel) return OkStatus();
  HR_ASSIGN_OR_RETURN(call.kernel, BindKernel(*call.op));
  return OkStatus();
}

void BindStateful(Program& p) {
  for (Call& call : p.calls) {
    // Before the program is copied for shapes: kernels with state (random
    // streams) must be one for all plans. What cannot be bound the plan
    // reports.
    if (call.op->def().is_stateful) BindCall(call).IgnoreError();
  }
}

bool IsGuess(const Program& p, const Call& call) {
  if (call.op->def().shape_fn == nullptr) return false;
  // Their functions check what they are given.
  if (IsFunctionCall(call.op->def())) return false;
  absl::InlinedVector<const Shape*, 8> shapes;
  absl::InlinedVector<const Tensor*, 8> values;
  for (ValueId v : call.inputs) {
    const ProgramValue& value = p.values[v];
    if (!value.shape.fully_known()) return true;
    shapes.push_back(&value.shape);
    values.push_back(value.constant.has_buffer() ? &value.constant : nullptr);
  }
  ShapeContext c(*call.op, shapes, values);
  if (!RunShapeRule(c).ok()) return true;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr && c.asked_value(static_cast<int>(i))) return true;
  }
  // Results that a kernel makes itself are looked at anyway.
  if (call.kernel->own_outputs() && call.op->def().view_input < 0) return false;
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    const ProgramValue& out = p.values[call.outputs[o]];
    if (out.shape.fully_known() && !IsRef(out.dtype) &&
        out.shape != c.output(static_cast<int>(o))) {
      return true;
    }
  }
  return false;
}

Status CheckMadeType(DType made, DType said) {
  if (made == said) [[likely]]
    return OkStatus();
  return InvalidArgument("a result of type ", DTypeName(made),
                         " where the graph says ", DTypeName(said));
}

Status CheckMadeShape(const Shape& made, const Shape& said) {
  if (made == said) [[likely]]
    return OkStatus();
  return InvalidArgument("a result of shape ", made, " where the graph says ",
                         said);
}

[[gnu::cold]] Status AtCall(const Status& s, const std::string& name) {
  if (name.empty()) return s;  // a call of many nodes, which names its own
  if (s.message().size() > kLongestMessage) return s;
  return AtNode(s, name);
}

StatusOr<Program> MakeProgram(const Graph& graph, absl::Span<const Edge> feeds,
                              absl::Span<const Edge> fetches,
                              absl::Span<Node* const> targets,
                              const FunctionLibrary* library,
                              PlanBudget* budget) {
  PlanBudget own;
  if (budget == nullptr) budget = &own;
  Program p;
  p.sandbox = graph.sandbox();
  Mapping map;
  for (const Edge& e : feeds) {
    ValueId v = p.NewValue(BaseType(e.node->output_type(e.index)),
                           e.node->output_shape(e.index));
    if (!map.emplace(e, v).second) {
      return InvalidArgument("Tensor ", e.node->name(), ":", e.index,
                             " was fed more than once.");
    }
    p.feeds.push_back(v);
  }
  std::vector<Node*> nodes = NeededNodes(fetches, targets, NotIn(map));
  if (RunsInFrames(nodes)) {
    HR_ASSIGN_OR_RETURN(
        p, MakeFrameProgram(graph, nodes, feeds, fetches, library));
    p.sandbox = graph.sandbox();
    return p;
  }
  HR_RETURN_IF_ERROR(Sort(&nodes, map));
  WaitTracker waits(library);
  bool any = false;
  if (!graph.is_body) {
    any = waits.Begin(&nodes, feeds);
  } else if (MeetingFinder(library).AnyOf(nodes)) {
    // Bodies run what they do in the order in which it was recorded, but for
    // calls that wait for each other.
    std::vector<Node*> moved = nodes;
    any = waits.Begin(&moved, feeds);
  }
  Writer writer(&p, library, budget, AskedFor(targets), any ? &waits : nullptr,
                graph.is_body);
  HR_RETURN_IF_ERROR(writer.Write(nodes, &map, 0));
  writer.EndNodes();
  p.waits = waits.order();
  for (const Edge& e : fetches) {
    ValueId v = map.at(e);
    if (IsRef(p.values[v].dtype)) {
      std::string reader =
          absl::StrCat("_retval_", e.node->name(), "_", e.index, "_0");
      HR_ASSIGN_OR_RETURN(v, writer.ReadReference(v, e, reader));
    }
    p.fetches.push_back(v);
  }
  HR_RETURN_IF_ERROR(NarrowCalls(p, library));
  return p;
}

}  // namespace headrace
