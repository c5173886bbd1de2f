// TF_NewWhile: loops of a condition and a body that are built as graphs.
#include <memory>

#include "base/hash_map.h"
#include "c/graph.h"
#include "c/status.h"
#include "graph/flow_context.h"

namespace headrace::capi {
namespace {

// Behind the params that a caller has: what they do not say.
struct LoopParts {
  TF_Graph cond, body;
  TF_Graph* around = nullptr;
  std::vector<Edge> first;  // of `around`
  std::vector<TF_Output> cond_inputs, body_inputs, body_outputs;
};

// The parts by the graph of their condition, which the params name.
class OpenLoops {
 public:
  void Add(std::unique_ptr<LoopParts> parts) {
    MutexLock lock(mutex_);
    TF_Graph* key = &parts->cond;
    loops_[key] = std::move(parts);
  }
  std::unique_ptr<LoopParts> Take(TF_Graph* key) {
    MutexLock lock(mutex_);
    auto it = loops_.find(key);
    if (it == loops_.end()) return nullptr;
    std::unique_ptr<LoopParts> parts = std::move(it->second);
    loops_.erase(it);
    return parts;
  }

 private:
  Mutex mutex_;
  HashMap<TF_Graph*, std::unique_ptr<LoopParts>> loops_ ABSL_GUARDED_BY(mutex_);
};

OpenLoops& Loops() {
  static auto* loops = new OpenLoops;
  return *loops;
}

Status AddLoopInput(TF_Graph* part, const Edge& first, const std::string& name,
                    std::vector<TF_Output>* inputs) {
  MutexLock lock(part->mutex);
  HR_ASSIGN_OR_RETURN(Value v,
                      part->builder.AddPlaceholder(
                          name, BaseType(first.node->output_type(first.index)),
                          first.node->output_shape(first.index),
                          first.node->output_handle(first.index)));
  inputs->push_back(part->OutputOf(headrace::EdgeOf(v)));
  return OkStatus();
}

StatusOr<std::unique_ptr<LoopParts>> NewParts(TF_Graph* g, TF_Output* inputs,
                                              int count) {
  HR_RETURN_IF_ERROR(NotNull(g, "g"));
  if (count == 0) {
    return InvalidArgument("TF_NewWhile() must be passed at least one input");
  }
  auto parts = std::make_unique<LoopParts>();
  parts->around = g;
  parts->cond.is_part = parts->body.is_part = true;
  MutexLock lock(g->mutex);
  HR_ASSIGN_OR_RETURN(parts->first, EdgesOf(g, inputs, count));
  for (int i = 0; i < count; ++i) {
    HR_RETURN_IF_ERROR(AddLoopInput(&parts->cond, parts->first[i],
                                    absl::StrCat("cond_input", i),
                                    &parts->cond_inputs));
    HR_RETURN_IF_ERROR(AddLoopInput(&parts->body, parts->first[i],
                                    absl::StrCat("body_input", i),
                                    &parts->body_inputs));
  }
  parts->body_outputs.assign(count, TF_Output{nullptr, -1});
  return parts;
}

Status CheckParams(const TF_WhileParams& p, LoopParts* parts) {
  HR_RETURN_IF_ERROR(NotNull(parts, "params->cond_graph"));
  if (p.cond_output.oper == nullptr) {
    return InvalidArgument("TF_WhileParams `cond_output` field isn't set");
  }
  for (int i = 0; i < static_cast<int>(parts->first.size()); ++i) {
    if (parts->body_outputs[i].oper == nullptr) {
      return InvalidArgument("TF_WhileParams `body_outputs[", i,
                             "]` field isn't set");
    }
  }
  if (p.name == nullptr) {
    return InvalidArgument("TF_WhileParams `name` field is null");
  }
  return OkStatus();
}

// Puts a graph's nodes into the builder's, under its scope and in its context.
class PartCopier {
 public:
  PartCopier(const Graph& from, GraphBuilder* builder)
      : from_(from), builder_(builder) {}

  void Stand(const Edge& input, const Value& value) {
    values_.emplace(input, value);
    stands_.emplace(input.node, value.node());
  }

  Status Copy() {
    for (const std::string& name : from_.library()->Names()) {
      FunctionPtr f = from_.library()->Find(name);
      FunctionLibrary& library = *builder_->graph()->library();
      if (f && !library.Find(name)) HR_RETURN_IF_ERROR(library.Add(f));
    }
    for (int i = 0; i < from_.num_nodes(); ++i) {
      const Node* n = from_.node(i);
      if (!stands_.contains(n)) HR_RETURN_IF_ERROR(CopyNode(*n));
    }
    return OkStatus();
  }

  StatusOr<Value> Find(TF_Graph* part, TF_Output output) const {
    HR_ASSIGN_OR_RETURN(Edge e, EdgeOf(part, output));
    auto it = values_.find(e);
    if (it == values_.end()) {
      return Internal("output ", e.index, " of '", e.node->name(),
                      "' was not copied");
    }
    return it->second;
  }

 private:
  Status CopyNode(const Node& n) {
    std::vector<Value> inputs;
    for (const Edge& e : n.inputs()) {
      auto it = values_.find(e);
      if (it == values_.end()) {
        return InvalidArgument("'", n.name(), "' reads '", e.node->name(),
                               "', which comes after it: loops within a loop "
                               "are made by TF_NewWhile as functions' bodies "
                               "are, one after the other");
      }
      inputs.push_back(it->second);
    }
    std::vector<Node*> controls;
    for (const Node* c : n.control_inputs()) {
      if (auto it = stands_.find(c); it != stands_.end()) {
        controls.push_back(it->second);
      }
    }
    std::vector<Node*> before = builder_->SetControlInputs(std::move(controls));
    const std::string device = builder_->device();
    if (!n.device().empty()) builder_->set_device(n.device());
    builder_->SetNextName(n.name());
    ValueList outputs;
    Status s = builder_->Emit(n.op_ptr(), inputs, &outputs);
    builder_->set_device(device);
    builder_->SetControlInputs(std::move(before));
    HR_RETURN_IF_ERROR(s);
    // The newest node may be one that brought an input in.
    if (outputs.empty()) {
      Graph& graph = *builder_->graph();
      stands_[&n] = graph.node(graph.num_nodes() - 1);
    }
    for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
      values_.emplace(Edge{const_cast<Node*>(&n), i}, outputs[i]);
      stands_[&n] = outputs[i].node();
    }
    return OkStatus();
  }

  const Graph& from_;
  GraphBuilder* builder_;
  HashMap<Edge, Value> values_;
  HashMap<const Node*, Node*> stands_;
};

class LoopMaker {
 public:
  LoopMaker(LoopParts* parts, const TF_WhileParams& params)
      : parts_(*parts), params_(params), b_(&parts->around->builder) {}

  StatusOr<std::vector<Value>> Make() {
    const std::string scope = b_->scope();
    const std::string frame = b_->graph()->UniqueName(params_.name);
    scope_ = frame + "/";
    b_->set_scope(scope_);
    loop_ = b_->NewContext<LoopContext>(nullptr, frame,
                                        /*parallel_iterations=*/10,
                                        /*back_prop=*/true);
    StatusOr<std::vector<Value>> exits = MakeInScope();
    b_->set_scope(scope);
    return exits;
  }

 private:
  StatusOr<std::vector<Value>> MakeInScope() {
    HR_RETURN_IF_ERROR(MakeMerges());
    loop_->set_pivot(merges_[0].node());
    HR_ASSIGN_OR_RETURN(std::vector<Value> holds,
                        CopyPart("cond/", &parts_.cond, parts_.cond_inputs,
                                 merges_, {&params_.cond_output, 1}));
    if (holds[0].dtype() != DType::kBool) {
      return InvalidArgument(
          "BuildWhileLoop: 'cond' argument must return a "
          "boolean output, got ",
          DTypeName(holds[0].dtype()));
    }
    HR_ASSIGN_OR_RETURN(Value cond, b_->EmitIn("LoopCond", loop_, {holds[0]}));
    std::vector<Value> on, exits;
    for (const Value& merge : merges_) {
      HR_ASSIGN_OR_RETURN(Value off,
                          b_->EmitIn("Switch", loop_, {merge, cond}));
      HR_ASSIGN_OR_RETURN(Value exit, b_->EmitIn("Exit", loop_, {off}));
      exits.push_back(exit);
      HR_ASSIGN_OR_RETURN(
          Value inside,
          b_->EmitIn("Identity", loop_, {b_->graph()->Output(off.node(), 1)}));
      on.push_back(inside);
    }
    loop_->set_pivot(on[0].node());
    HR_ASSIGN_OR_RETURN(std::vector<Value> after,
                        CopyPart("body/", &parts_.body, parts_.body_inputs, on,
                                 parts_.body_outputs));
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i].dtype() != merges_[i].dtype()) {
        return InvalidArgument("the loop's body makes a ",
                               DTypeName(after[i].dtype()), " of variable ", i,
                               ", a ", DTypeName(merges_[i].dtype()));
      }
      HR_ASSIGN_OR_RETURN(Value next,
                          b_->EmitIn("NextIteration", loop_, {after[i]}));
      merges_[i].node()->SetInput(1, headrace::EdgeOf(next));
    }
    return exits;
  }

  Status MakeMerges() {
    for (const Edge& e : parts_.first) {
      HR_ASSIGN_OR_RETURN(Value enter,
                          loop_->Enter(b_->graph()->Output(e), false));
      HR_ASSIGN_OR_RETURN(Value merge,
                          b_->EmitIn("Merge", loop_, {enter, enter}));
      // What goes round may have other sizes than what enters.
      merges_.push_back(merge);
    }
    return OkStatus();
  }

  // The part's nodes in the loop, `values` in the place of its inputs; what
  // they make of `outputs`.
  StatusOr<std::vector<Value>> CopyPart(StringView scope, TF_Graph* part,
                                        const std::vector<TF_Output>& inputs,
                                        const std::vector<Value>& values,
                                        absl::Span<const TF_Output> outputs) {
    MutexLock lock(part->mutex);
    PartCopier copier(*part->graph, b_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      copier.Stand(headrace::Edge{inputs[i].oper->node, 0}, values[i]);
    }
    const ContextScope in(b_, loop_);
    b_->set_scope(absl::StrCat(scope_, scope));
    const Status copied = copier.Copy();
    b_->set_scope(scope_);
    HR_RETURN_IF_ERROR(copied);
    std::vector<Value> made;
    for (const TF_Output& output : outputs) {
      HR_ASSIGN_OR_RETURN(Value v, copier.Find(part, output));
      made.push_back(v);
    }
    return made;
  }

  LoopParts& parts_;
  const TF_WhileParams& params_;
  GraphBuilder* b_;
  std::string scope_;
  LoopContext* loop_ = nullptr;
  std::vector<Value> merges_;
};

Status FinishLoop(const TF_WhileParams& params, LoopParts* parts,
                  TF_Output* outputs) {
  HR_RETURN_IF_ERROR(CheckParams(params, parts));
  HR_RETURN_IF_ERROR(NotNull(outputs, "outputs"));
  TF_Graph* g = parts->around;
  MutexLock lock(g->mutex);
  if (g->loop_frames.contains(params.name)) {
    return InvalidArgument("WhileContext with frame name '", params.name,
                           "' already exists");
  }
  const int before = g->graph->num_nodes();
  StatusOr<std::vector<Value>> exits = LoopMaker(parts, params).Make();
  ++g->changes;
  if (!exits.ok()) {
    for (int i = before; i < g->graph->num_nodes(); ++i) {
      g->builder.SetContextOf(*g->graph->node(i), nullptr);
    }
    while (g->graph->num_nodes() > before) g->graph->RemoveLastNode();
    return exits.status();
  }
  g->loop_frames.insert(params.name);
  for (size_t i = 0; i < exits->size(); ++i) {
    outputs[i] = g->OutputOf(headrace::EdgeOf((*exits)[i]));
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs,
                           TF_Status* status) {
  std::unique_ptr<capi::LoopParts> parts;
  const bool ok = capi::Into(status, [&]() -> headrace::Status {
    HR_ASSIGN_OR_RETURN(parts, capi::NewParts(g, inputs, ninputs));
    return headrace::OkStatus();
  });
  if (!ok) {
    return {0,       nullptr, nullptr, {nullptr, 0},
            nullptr, nullptr, nullptr, nullptr};
  }
  capi::LoopParts* p = parts.get();
  capi::Loops().Add(std::move(parts));
  return {ninputs,
          &p->cond,
          p->cond_inputs.data(),
          {nullptr, -1},
          &p->body,
          p->body_inputs.data(),
          p->body_outputs.data(),
          nullptr};
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status,
                    TF_Output* outputs) {
  capi::Into(status, [&]() -> headrace::Status {
    HR_RETURN_IF_ERROR(capi::NotNull(params, "params"));
    // Gone whatever comes of it.
    const std::unique_ptr<capi::LoopParts> parts =
        capi::Loops().Take(params->cond_graph);
    return capi::FinishLoop(*params, parts.get(), outputs);
  });
}

void TF_AbortWhile(const TF_WhileParams* params) {
  if (params) capi::Loops().Take(params->cond_graph);
}
