#include "vectorize/vectorize.h"

#include <algorithm>

#include "base/hash_map.h"
#include "base/stack_room.h"
#include "graph/export.h"
#include "op/registry.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "vectorize/written_body.h"

namespace headrace {
namespace {

// Calls within calls: recursion is not known from its graph alone.
constexpr int kDeepestCalls = 32;

// Has a rule that is asked also where no input is stacked: what it draws or
// makes is one thing a row.
bool IsOfEachRow(const OpDef& def) {
  return def.vectorize && (def.Has(OpTrait::kOnePerRow) ||
                           (def.is_stateful && CallsFunctions(def)));
}

// Ops of lists take a variant by declaration. Others that any variant may come
// to, such as Pack, would take a list of stacked elements for one row's.
bool TakesLists(const OpDef& def, const ArgDef& arg) {
  return arg.type == DType::kVariant || def.Has(OpTrait::kTakesLists) ||
         CallsFunctions(def);
}

// Unimplemented, as upstream says it; `operands` may be left out.
Status NoRule(const Node& n, StringView operands) {
  tensorflow::NodeDef def;
  HR_RETURN_IF_ERROR(ExportNode(n, {}, &def));
  return Unimplemented("No pfor vectorization defined for ", n.op().name(),
                       "\n", def.DebugString(), "\n inputs: [", operands,
                       "].Consider enabling the fallback_to_while_loop option "
                       "to pfor, which may run slower.");
}

std::string LoopWarning(const Node& n) {
  return absl::StrCat("Using a while_loop for converting ", n.op().name(),
                      " cause there is no registered converter for this op.");
}

// A call of `f` that changes what later rows may read: their order matters.
// Null for none.
const Node* ChangesState(const Function& f, const FunctionLibrary* library,
                         int depth) {
  for (const Node* n : f.control_outputs) {
    const OpDef& def = n->def();
    if (!HasSideEffect(def)) continue;
    if (!CallsFunctions(def)) {
      for (DType d : n->op().input_types()) {
        if (d == DType::kResource || IsRef(d)) return n;
      }
      continue;
    }
    for (const auto& [name, value] : n->op().attrs()) {
      std::vector<FuncRef> callees;
      if (const auto* one = std::get_if<FuncRef>(&value)) callees = {*one};
      if (const auto* more = std::get_if<std::vector<FuncRef>>(&value)) {
        callees = *more;
      }
      for (const FuncRef& ref : callees) {
        StatusOr<FunctionPtr> callee = FindFunction(library, ref.name);
        if (!callee.ok() || depth > kDeepestCalls) continue;
        if (const Node* inner = ChangesState(**callee, library, depth + 1)) {
          return inner;
        }
      }
    }
  }
  return nullptr;
}

// Makes or reads resources, which all rows share.
bool IsOfResources(const Node* n) {
  for (DType d : n->op().input_types()) {
    if (d == DType::kResource || IsRef(d)) return true;
  }
  for (DType d : n->op().output_types()) {
    if (d == DType::kResource || IsRef(d)) return true;
  }
  return false;
}

bool IsRefusal(const Status& s) {
  return s.code() == absl::StatusCode::kUnimplemented;
}

class Walk {
 public:
  Walk(const Function& body, const Value& count,
       const VectorizeOptions& options)
      : body_(body), count_(count), options_(options) {}

  StatusOr<std::vector<RowValue>> Run(absl::Span<const RowValue> args) {
    if (args.size() != body_.args.size()) {
      return InvalidArgument("vectorizing '", body_.name, "' of ",
                             body_.args.size(), " arguments with ",
                             args.size());
    }
    for (size_t i = 0; i < args.size(); ++i) {
      values_[Edge{body_.args[i], 0}] = args[i];
    }
    builder_ = dynamic_cast<GraphBuilder*>(CurrentEmitter());
    for (Node* n : Needed()) {
      if (values_.contains(Edge{n, 0})) continue;  // an argument
      HR_RETURN_IF_ERROR(Do(n));
    }
    std::vector<RowValue> results;
    for (const Edge& e : body_.results) results.push_back(values_.at(e));
    return results;
  }

 private:
  // What results and effects need, inputs first.
  std::vector<Node*> Needed() const {
    std::vector<char> state(body_.body->num_nodes());  // 1 open, 2 done
    std::vector<Node*> order;
    std::vector<std::pair<Node*, int>> stack;
    auto visit = [&](Node* root) {
      if (state[root->id()]) return;
      state[root->id()] = 1;
      stack.push_back({root, 0});
      while (!stack.empty()) {
        auto& [n, next] = stack.back();
        const int inputs = n->num_inputs();
        if (next == inputs + static_cast<int>(n->control_inputs().size())) {
          state[n->id()] = 2;
          order.push_back(n);
          stack.pop_back();
          continue;
        }
        Node* before = next < inputs ? n->input(next).node
                                     : n->control_inputs()[next - inputs];
        ++next;
        if (state[before->id()]) continue;
        state[before->id()] = 1;
        stack.push_back({before, 0});
      }
    };
    // Effects first and in order, as they run whether or not a result waits.
    for (Node* n : body_.control_outputs) visit(n);
    for (const Edge& e : body_.results) visit(e.node);
    return order;
  }

  Status Do(Node* n) {
    std::vector<RowValue> inputs;
    bool all_shared = true;
    for (const Edge& e : n->inputs()) {
      inputs.push_back(values_.at(e));
      all_shared = all_shared && inputs.back().shared();
    }
    std::vector<Node*> outer_controls;
    if (builder_) {
      // What the surroundings wait for, too.
      std::vector<Node*> controls = builder_->control_inputs();
      for (Node* c : n->control_inputs()) {
        auto it = made_.find(c);
        if (it != made_.end()) controls.push_back(it->second);
      }
      outer_controls = builder_->SetControlInputs(std::move(controls));
    }
    const int before = builder_ ? builder_->graph()->num_nodes() : 0;
    StatusOr<std::vector<RowValue>> outputs =
        all_shared && !IsOfEachRow(n->def()) ? Once(n, inputs)
                                             : OfRows(n, inputs);
    if (builder_) {
      builder_->SetControlInputs(std::move(outer_controls));
      const int behind = builder_->graph()->num_nodes();
      if (behind > before) made_[n] = builder_->graph()->node(behind - 1);
    }
    HR_RETURN_IF_ERROR(outputs.status());
    for (int i = 0; i < n->num_outputs(); ++i) {
      KeepShape(n->output_shape(i), (*outputs)[i]);
      values_[Edge{n, i}] = std::move((*outputs)[i]);
    }
    return OkStatus();
  }

  StatusOr<std::vector<RowValue>> Once(Node* n,
                                       absl::Span<const RowValue> inputs) {
    // What has an effect, or is new each time it is asked, is so for each row.
    if (n->def().is_stateful && !n->def().vectorize && !IsOfResources(n)) {
      return Row(n, inputs, OkStatus());
    }
    std::vector<Value> plain;
    for (const RowValue& v : inputs) plain.push_back(v.value);
    ValueList outputs;
    HR_RETURN_IF_ERROR(Emit(n->op_ptr(), plain, &outputs));
    std::vector<RowValue> result;
    for (Value& v : outputs)
      result.push_back({std::move(v), Stacking::kShared});
    return result;
  }

  StatusOr<std::vector<RowValue>> OfRows(Node* n,
                                         absl::Span<const RowValue> inputs) {
    if (!n->def().vectorize) return Row(n, inputs, OkStatus());
    VectorizeContext c(n->op_ptr(), inputs, count_, options_);
    Status s = WantNoStrayList(c);
    if (s.ok()) s = n->def().vectorize(c);
    if (s.ok()) s = c.status();
    if (s.ok()) {
      for (const RowValue& v : c.results()) {
        if (!v.value) {
          return Internal("vectorizing ", n->op().name(), " left out a result");
        }
      }
      return std::move(c.results());
    }
    if (!IsRefusal(s)) return s;
    return c.in_loop() ? InLoop(n, inputs) : Row(n, inputs, s);
  }

  static Status WantNoStrayList(const VectorizeContext& c) {
    const OpDef& def = c.op().def();
    for (size_t a = 0; a < def.inputs.size(); ++a) {
      if (TakesLists(def, def.inputs[a])) continue;
      const ArgRange range = c.op().input_range(static_cast<int>(a));
      for (int i = range.begin; i < range.end; ++i) {
        if (c.in_list(i)) return c.Refuse("it takes a TensorList of each row.");
      }
    }
    return OkStatus();
  }

  // `n` in a loop over the rows; `why` its rule did not do, OK if it has none.
  StatusOr<std::vector<RowValue>> Row(Node* n,
                                      absl::Span<const RowValue> inputs,
                                      const Status& why) {
    if (!options_.loops) {
      if (!why.ok()) return why;
      std::string operands;
      for (const RowValue& v : inputs) {
        absl::StrAppend(&operands, operands.empty() ? "" : ", ",
                        DTypeName(v.value.dtype()), v.value.shape().ToString(),
                        v.shared() ? "" : " (stacked)");
      }
      return NoRule(*n, operands);
    }
    if (why.ok() && options_.warn) options_.warn(LoopWarning(*n));
    return InLoop(n, inputs);
  }

  StatusOr<std::vector<RowValue>> InLoop(Node* n,
                                         absl::Span<const RowValue> inputs) {
    // Rows' results that may differ in size cannot be stacked here, but those
    // of the whole body, which may be done in a loop too, may be alike.
    for (int i = 0; i < n->num_outputs() && options_.loops; ++i) {
      if (n->output_shape(i).fully_known()) continue;
      return Unimplemented("Results of ", n->op().name(),
                           " may have other sizes for each row.");
    }
    ArgTypes types;
    ArgHandles handles;
    for (const Edge& e : n->inputs()) {
      types.push_back(
          {e.node->output_type(e.index), e.node->output_shape(e.index)});
      handles.push_back(e.node->output_handle(e.index));
    }
    HR_ASSIGN_OR_RETURN(
        FunctionPtr f,
        WriteFunction("__row", types, handles,
                      [&](OpScope& s, absl::Span<const Value> args,
                          std::vector<Value>* results) {
                        ValueList outputs;
                        HR_RETURN_IF_ERROR(Emit(n->op_ptr(), args, &outputs));
                        results->assign(outputs.begin(), outputs.end());
                        return OkStatus();
                      }));
    HR_ASSIGN_OR_RETURN(std::vector<Value> outputs,
                        LoopOverRows(f, inputs, count_));
    std::vector<RowValue> result;
    for (Value& v : outputs)
      result.push_back({std::move(v), Stacking::kStacked});
    return result;
  }

  // The body's own trace may know more of a shape than the rule did.
  void KeepShape(const Shape& row, const RowValue& v) const {
    if (!v.value.is_symbolic() || row.rank() < 0 ||
        v.rows == Stacking::kInList || v.value.shape().fully_known()) {
      return;
    }
    Shape all = row;
    if (v.rows == Stacking::kStacked) {
      const Tensor* n = CurrentEmitter()->KnownValue(count_);
      all.InsertDim(0, n ? n->scalar<int32_t>() : Shape::kUnknown);
    }
    const Shape& known = v.value.shape();
    if (known.rank() >= 0 && known.rank() != all.rank()) return;
    for (int d = 0; d < known.rank(); ++d) {
      if (known[d] >= 0) all.set_dim(d, known[d]);
    }
    SetShape(v.value, all);
  }

  const Function& body_;
  const Value& count_;
  const VectorizeOptions& options_;
  GraphBuilder* builder_ = nullptr;  // null where ops run at once
  HashMap<Edge, RowValue> values_;
  HashMap<const Node*, Node*> made_;  // the last node made of each
};

}  // namespace

StatusOr<std::vector<RowValue>> Vectorize(const FunctionPtr& body,
                                          absl::Span<const RowValue> args,
                                          const Value& count,
                                          const VectorizeOptions& options) {
  HR_RETURN_IF_ERROR(CheckStackRoom("vectorizing"));
  if (options.depth > kDeepestCalls) {
    return Unimplemented("No pfor vectorization defined for calls that are ",
                         options.depth, " deep");
  }
  const Node* change = ChangesState(*body, options.library, 0);
  if (!change) return Walk(*body, count, options).Run(args);
  if (!options.loops) return NoRule(*change, "");
  if (options.warn) options.warn(LoopWarning(*change));
  HR_ASSIGN_OR_RETURN(std::vector<Value> values,
                      LoopOverRows(body, args, count));
  std::vector<RowValue> results;
  for (Value& v : values) results.push_back({std::move(v), Stacking::kStacked});
  return results;
}

StatusOr<FunctionPtr> FunctionForRows(const FunctionPtr& body,
                                      absl::Span<const RowValue> args,
                                      const Value& count,
                                      const VectorizeOptions& options) {
  RowArgs rows;
  for (const RowValue& v : args) rows.Add(v);
  const std::vector<Stacking> stacked(body->results.size(), Stacking::kStacked);
  StatusOr<FunctionPtr> f =
      WriteForRows(body, rows, stacked, count, false, options);
  if (!IsRefusal(f.status()) || !options.loops) return f;
  return WriteRowLoop(body, rows, count);
}

}  // namespace headrace
