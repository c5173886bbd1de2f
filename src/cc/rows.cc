// Loops over the rows of tensors: Map, Scan and Fold.
#include <algorithm>

#include "base/cancellation.h"
#include "cc/bodies.h"
#include "cc/compose.h"

namespace headrace::tf::internal {
namespace {

// What a walk over rows works on.
struct Walk {
  const char* what;
  const BodyFn& step;
  const RowsOptions& options;
  Signature carried, rows;
  int64_t known = -1;  // the number of rows, where it is known
};

headrace::Shape RowShape(const Value& v) {
  const headrace::Shape& shape = v.shape();
  return shape.known_rank() ? shape.Sub(1, shape.rank()) : shape;
}

// The number of rows, -1 where it is not known yet.
int64_t CheckRows(const char* what, const Signature& rows) {
  int64_t known = -1;
  if (rows.leaves().empty())
    RefuseFor(what, "there are no tensors in the rows");
  for (const Value& v : rows.leaves()) {
    if (v.shape().rank() == 0) {
      RefuseFor(what, "rows of a scalar: tensors of rank 1 or more are wanted");
    }
    const int64_t n = v.shape().known_rank() ? v.shape()[0] : -1;
    if (n >= 0 && known >= 0 && n != known) {
      RefuseFor(what, absl::StrCat("tensors with ", known, " and ", n,
                                   " rows do not go together"));
    }
    if (n >= 0) known = n;
  }
  return known;
}

// What one step gives: what is carried on, and what is collected.
struct StepResult {
  Tokens carried, given;
  std::vector<Value> carried_values, given_values;
};

StepResult Step(const Walk& walk, absl::Span<const Value> carried,
                absl::Span<const Value> row) {
  const Tokens tokens = TupleOf({WithTensors(walk.carried.tokens(), carried),
                                 WithTensors(walk.rows.tokens(), row)});
  std::vector<Value> values(carried.begin(), carried.end());
  values.insert(values.end(), row.begin(), row.end());
  const Signature found = RunBody(walk.step, tokens, values);
  const size_t between = BehindStructure(found.tokens(), 1);
  StepResult out;
  out.carried.assign(found.tokens().begin() + 1,
                     found.tokens().begin() + between);
  out.given.assign(found.tokens().begin() + between, found.tokens().end());
  const size_t n = carried.size();
  const TokenSpan before = walk.carried.tokens();
  const std::string wrong = Difference(before, out.carried);
  if (!wrong.empty()) {
    RefuseFor(walk.what,
              "the state must keep its structure and dtypes: "
              "before and after a step, " +
                  wrong);
  }
  if (!Serves(before, out.carried)) {
    const Status misfit =
        Misfit(TupleOf({before}), TupleOf({out.carried}), {"the state"});
    RefuseFor(walk.what, absl::StrCat("after a step, ", misfit.message()));
  }
  out.carried_values.assign(found.leaves().begin(), found.leaves().begin() + n);
  out.given_values.assign(found.leaves().begin() + n, found.leaves().end());
  return out;
}

// One step in a graph that is thrown away: what it gives.
StepResult Tried(const Walk& walk) {
  std::vector<ArgSpec> args;
  for (const Value& v : walk.carried.leaves()) args.push_back(SpecOf(v));
  const size_t n = args.size();
  for (const Value& v : walk.rows.leaves()) {
    args.push_back(SpecOf(v));
    args.back().shape = RowShape(v);
  }
  StepResult found;
  const BodyGraph scratch(args, [&](absl::Span<const Value> values) {
    found = Step(walk, values.subspan(0, n), values.subspan(n));
    return found.given_values;
  });
  return found;
}

Value Stacked(const Value& like, std::vector<Tensor> parts) {
  if (!parts.empty()) {
    const auto n = static_cast<int64_t>(parts.size());
    return Access::ValueOf(Op("Pack", parts, {{"N", n}, {"axis", 0}}));
  }
  std::vector<int64_t> dims = {0};
  for (int64_t d : like.shape().dims()) dims.push_back(d < 0 ? 0 : d);
  headrace::Tensor none =
      Check(headrace::Tensor::Allocate(like.dtype(), headrace::Shape(dims)));
  return Value(std::move(none));
}

void WalkNow(Walk& walk, Taken result) {
  std::vector<std::vector<Tensor>> columns;
  for (const Value& v : walk.rows.leaves()) {
    columns.push_back(
        OpAll("Unpack", {Access::Wrap(v)}, {{"num", walk.known}, {"axis", 0}}));
  }
  std::vector<Value> carried(walk.carried.leaves().begin(),
                             walk.carried.leaves().end());
  // Only asked for without rows: nothing else says what a row would give.
  StepResult last = walk.known == 0 ? Tried(walk) : StepResult();
  std::vector<std::vector<Tensor>> collected(last.given_values.size());
  for (int64_t i = 0; i < walk.known; ++i) {
    Check(CheckStop());
    const int64_t at = walk.options.reverse ? walk.known - 1 - i : i;
    std::vector<Value> row;
    for (const auto& column : columns) {
      row.push_back(Access::ValueOf(column[at]));
    }
    StepResult now = Step(walk, carried, row);
    if (i > 0 && !Difference(last.given, now.given).empty()) {
      RefuseFor(walk.what,
                "what rows give must be of one structure and dtypes");
    }
    collected.resize(now.given_values.size());
    for (size_t k = 0; k < collected.size(); ++k) {
      collected[k].push_back(Access::Wrap(now.given_values[k]));
    }
    carried = now.carried_values;
    last = std::move(now);
  }
  std::vector<Value> stacked;
  for (size_t k = 0; k < collected.size(); ++k) {
    if (walk.options.reverse) {
      std::reverse(collected[k].begin(), collected[k].end());
    }
    stacked.push_back(Stacked(last.given_values[k], std::move(collected[k])));
  }
  const Tokens tokens = TupleOf({WithTensors(walk.carried.tokens(), carried),
                                 WithTensors(last.given, stacked)});
  carried.insert(carried.end(), stacked.begin(), stacked.end());
  HandOver(tokens, carried, result);
}

// An int32 vector with -1 for unknown sizes; -1 for an unknown rank.
Tensor ElementShape(const headrace::Shape& shape) {
  if (!shape.known_rank()) return Int(-1);
  return Ints({shape.dims().begin(), shape.dims().end()});
}

AttrMap ListAttrs(const Value& element) {
  return {{"element_dtype", element.dtype()}};
}

// The loop's values: the turn, what is carried, lists of what is given.
void WalkInGraph(const Walk& walk, Taken result) {
  const StepResult like = Tried(walk);
  const Tensor first = Access::Wrap(walk.rows.leaves()[0]);
  const Tensor count =
      walk.known >= 0 ? Int(walk.known)
                      : Op("StridedSlice",
                           {ShapeOf(first), Ints({0}), Ints({1}), Ints({1})},
                           {{"shrink_axis_mask", 1}});
  std::vector<Tensor> lists;
  for (const Value& v : walk.rows.leaves()) {
    lists.push_back(Op("TensorListFromTensor",
                       {Access::Wrap(v), ElementShape(RowShape(v))},
                       {{"element_dtype", v.dtype()},
                        {"shape_type", headrace::DType::kInt32}}));
  }
  std::vector<Value> inputs = {Access::ValueOf(Int(0))};
  inputs.insert(inputs.end(), walk.carried.leaves().begin(),
                walk.carried.leaves().end());
  const size_t n = walk.carried.leaves().size();
  for (const Value& v : like.given_values) {
    inputs.push_back(Access::ValueOf(
        Op("TensorListReserve", {ElementShape(v.shape()), count},
           {{"element_dtype", v.dtype()},
            {"shape_type", headrace::DType::kInt32}})));
  }
  std::vector<headrace::Shape> shapes;
  for (const Value& v : inputs) shapes.push_back(v.shape());
  const auto holds = [&](absl::Span<const Value> args) {
    return std::vector<Value>{Access::ValueOf(Access::Wrap(args[0]) < count)};
  };
  const auto turn = [&](absl::Span<const Value> args) {
    const Tensor i = Access::Wrap(args[0]);
    const Tensor at = walk.options.reverse ? count - Int(1) - i : i;
    std::vector<Value> row;
    for (size_t k = 0; k < lists.size(); ++k) {
      const Value& v = walk.rows.leaves()[k];
      row.push_back(Access::ValueOf(
          Op("TensorListGetItem", {lists[k], at, ElementShape(RowShape(v))},
             ListAttrs(v))));
    }
    const StepResult now = Step(walk, args.subspan(1, n), row);
    std::vector<Value> next = {Access::ValueOf(i + Int(1))};
    next.insert(next.end(), now.carried_values.begin(),
                now.carried_values.end());
    for (size_t k = 0; k < now.given_values.size(); ++k) {
      next.push_back(Access::ValueOf(Op("TensorListSetItem",
                                        {Access::Wrap(args[1 + n + k]), at,
                                         Access::Wrap(now.given_values[k])},
                                        ListAttrs(now.given_values[k]))));
    }
    return next;
  };
  std::vector<Value> last = EmitWhile(walk.options.name, inputs, shapes, holds,
                                      turn, walk.options.parallel_iterations);
  last.erase(last.begin());
  for (size_t k = 0; k < like.given_values.size(); ++k) {
    const Value& v = like.given_values[k];
    AttrMap attrs = ListAttrs(v);
    attrs.Set("num_elements", walk.known);
    last[n + k] = Access::ValueOf(
        Op("TensorListStack",
           {Access::Wrap(last[n + k]), ElementShape(v.shape())}, attrs));
  }
  const absl::Span<const Value> all = last;
  HandOver(TupleOf({WithTensors(walk.carried.tokens(), all.subspan(0, n)),
                    WithTensors(like.given, all.subspan(n))}),
           last, result);
}

}  // namespace

void OverRows(const char* what, Given carried, Given rows, const BodyFn& step,
              const RowsOptions& options, Taken result) {
  Walk walk{what, step, options, TakenApart(carried), TakenApart(rows)};
  walk.known = CheckRows(what, walk.rows);
  IsTracing() ? WalkInGraph(walk, result) : WalkNow(walk, result);
}

}  // namespace headrace::tf::internal
