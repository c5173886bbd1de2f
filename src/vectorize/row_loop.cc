// What has no form for all rows at once, row by row: a While that gathers a
// row's arguments, calls the function and collects its results in lists.
#include "autodiff/written_function.h"
#include "vectorize/vectorize.h"

namespace headrace {
namespace {

// The variables of the loop: the turn, the count, arguments, lists.
constexpr int kTurn = 0, kCount = 1, kFirstArg = 2;

Value ElementShapeOf(OpScope& s, const Shape& shape, DType dtype) {
  if (shape.rank() < 0 || dtype == DType::kVariant) return s.Int32(-1);
  return s.Int32s(
      std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

Status RowTurn(const FunctionPtr& f, absl::Span<const RowValue> args,
               OpScope& s, absl::Span<const Value> in,
               std::vector<Value>* results) {
  std::vector<Value> row;
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& all = in[kFirstArg + i];
    row.push_back(
        args[i].shared() ? all : s("GatherV2", {all, in[kTurn], s.Int32(0)}));
  }
  ValueList outputs = CallFunction(s, f, row);
  HR_RETURN_IF_ERROR(s.status());
  results->push_back(s("AddV2", {in[kTurn], s.Int32(1)}));
  for (size_t i = kCount; i < kFirstArg + args.size(); ++i) {
    results->push_back(in[i]);
  }
  absl::Span<const Value> lists = in.subspan(kFirstArg + args.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    results->push_back(s("TensorListPushBack", {lists[i], outputs[i]},
                         {{"element_dtype", outputs[i].dtype()}}));
  }
  return s.status();
}

}  // namespace

StatusOr<std::vector<Value>> LoopOverRows(const FunctionPtr& f,
                                          absl::Span<const RowValue> args,
                                          const Value& count) {
  OpScope s;
  std::vector<Value> inputs = {s.Int32(0), count};
  for (const RowValue& v : args) {
    if (v.rows == Stacking::kInList ||
        (!v.shared() && v.value.dtype() == DType::kResource)) {
      return Unimplemented(
          "no loop over the rows of ",
          v.rows == Stacking::kInList ? "a TensorList" : "resources");
    }
    inputs.push_back(v.value);
  }
  for (const Edge& e : f->results) {
    const DType dtype = e.node->output_type(e.index);
    if (dtype == DType::kResource) {
      return Unimplemented("a loop over rows that makes resources");
    }
    inputs.push_back(s(
        "EmptyTensorList",
        {ElementShapeOf(s, e.node->output_shape(e.index), dtype), s.Int32(-1)},
        {{"element_dtype", dtype}}));
  }
  HR_RETURN_IF_ERROR(s.status());
  ArgTypes types;
  ArgHandles handles;
  Describe(inputs, &types, &handles);
  HR_ASSIGN_OR_RETURN(
      FunctionPtr cond,
      WriteFunction("__rows_cond", types, handles,
                    [&](OpScope& c, absl::Span<const Value> in,
                        std::vector<Value>* results) {
                      results->push_back(c("Less", {in[kTurn], in[kCount]}));
                      return c.status();
                    }));
  HR_ASSIGN_OR_RETURN(FunctionPtr body,
                      WriteFunction("__rows_body", types, handles,
                                    [&](OpScope& b, absl::Span<const Value> in,
                                        std::vector<Value>* results) {
                                      return RowTurn(f, args, b, in, results);
                                    }));
  std::vector<Shape> shapes;
  for (const auto& [dtype, shape] : types) shapes.push_back(shape);
  ValueList all =
      s.All(body->is_stateful() ? "While" : "StatelessWhile", inputs,
            {{"cond", FuncRef{cond->name, nullptr}},
             {"body", FuncRef{body->name, nullptr}},
             {"output_shapes", shapes}});
  HR_RETURN_IF_ERROR(s.status());
  const Tensor* known = s.Known(count);
  const int64_t rows = known ? known->scalar<int32_t>() : -1;
  std::vector<Value> results;
  for (size_t i = 0; i < f->results.size(); ++i) {
    const Edge& e = f->results[i];
    const DType dtype = e.node->output_type(e.index);
    results.push_back(
        s("TensorListStack",
          {all[kFirstArg + args.size() + i],
           ElementShapeOf(s, e.node->output_shape(e.index), dtype)},
          {{"element_dtype", dtype}, {"num_elements", rows}}));
  }
  HR_RETURN_IF_ERROR(s.status());
  return results;
}

}  // namespace headrace
