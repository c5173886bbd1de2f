#include "vectorize/written_body.h"

#include "op/registry.h"

namespace headrace {
namespace {

VectorizeOptions OneDeeper(const VectorizeOptions& options) {
  VectorizeOptions inner = options;
  ++inner.depth;
  return inner;
}

// The count within a function: a constant where it is known.
Value CountWithin(OpScope& s, const Value& outside, const Value& argument) {
  const Tensor* known = s.Known(outside);
  return known ? s.Const(*known) : argument;
}

ArgTypes WithCount(const RowArgs& args) {
  ArgTypes types = args.types;
  types.push_back({DType::kInt32, Shape()});
  return types;
}
ArgHandles WithNone(const RowArgs& args) {
  ArgHandles handles = args.handles;
  handles.push_back(nullptr);
  return handles;
}

std::vector<RowValue> Arguments(const RowArgs& args,
                                absl::Span<const Value> in) {
  std::vector<RowValue> values;
  for (size_t i = 0; i < args.rows.size(); ++i) {
    values.push_back({in[i], args.rows[i]});
  }
  return values;
}

}  // namespace

StatusOr<Value> AsRows(const RowValue& v, Stacking rows, const Value& count) {
  if (v.rows == rows) return v.value;
  if (!v.shared()) {
    return Unimplemented("stacked elements of a TensorList and rows are mixed");
  }
  HR_ASSIGN_OR_RETURN(const OpDef* identity, LookUpOp("Identity"));
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op,
                      ResolveOp(*identity, {v.value.dtype()}, {}));
  const VectorizeOptions options;
  VectorizeContext c(op, absl::MakeConstSpan(&v, 1), count, options);
  Value all = rows == Stacking::kInList ? c.Listed(0) : c.Repeat(v.value);
  HR_RETURN_IF_ERROR(c.status());
  return all;
}

Stacking WiderOf(Stacking a, Stacking b) {
  return a == Stacking::kShared ? b : a;
}

void RowArgs::Add(const RowValue& v) {
  types.push_back({v.value.dtype(), v.value.shape()});
  handles.push_back(v.value.shared_handle_data());
  rows.push_back(v.rows);
}

StatusOr<std::vector<Stacking>> RowsOfResults(const FunctionPtr& f,
                                              const RowArgs& args,
                                              const Value& count,
                                              const VectorizeOptions& options) {
  VectorizeOptions inner = OneDeeper(options);
  inner.warn = nullptr;  // the function that is kept tells
  std::vector<Stacking> rows;
  HR_RETURN_IF_ERROR(
      WriteFunction("__rows_of", WithCount(args), WithNone(args),
                    [&](OpScope& s, absl::Span<const Value> in,
                        std::vector<Value>*) -> Status {
                      HR_ASSIGN_OR_RETURN(
                          std::vector<RowValue> results,
                          Vectorize(f, Arguments(args, in),
                                    CountWithin(s, count, in.back()), inner));
                      for (const RowValue& v : results) rows.push_back(v.rows);
                      return OkStatus();
                    })
          .status());
  return rows;
}

StatusOr<FunctionPtr> WriteForRows(const FunctionPtr& f, const RowArgs& args,
                                   const std::vector<Stacking>& wanted,
                                   const Value& count, bool hands_count_on,
                                   const VectorizeOptions& options) {
  return WriteFunction(
      "__for_rows", WithCount(args), WithNone(args),
      [&](OpScope& s, absl::Span<const Value> in,
          std::vector<Value>* results) -> Status {
        const Value n = CountWithin(s, count, in.back());
        HR_ASSIGN_OR_RETURN(
            std::vector<RowValue> values,
            Vectorize(f, Arguments(args, in), n, OneDeeper(options)));
        for (size_t i = 0; i < values.size(); ++i) {
          HR_ASSIGN_OR_RETURN(Value v, AsRows(values[i], wanted[i], n));
          results->push_back(std::move(v));
        }
        if (hands_count_on) results->push_back(in.back());
        return s.status();
      });
}

StatusOr<FunctionPtr> WriteRowLoop(const FunctionPtr& f, const RowArgs& args,
                                   const Value& count) {
  return WriteFunction("__row_by_row", WithCount(args), WithNone(args),
                       [&](OpScope& s, absl::Span<const Value> in,
                           std::vector<Value>* results) -> Status {
                         HR_ASSIGN_OR_RETURN(
                             *results,
                             LoopOverRows(f, Arguments(args, in),
                                          CountWithin(s, count, in.back())));
                         return s.status();
                       });
}

}  // namespace headrace
