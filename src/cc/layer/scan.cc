// The loop of recurrent layers over time.
#include "cc/bodies.h"
#include "cc/compose.h"

namespace headrace::tf::internal {
namespace {

// Steps that traced code writes out; longer sequences loop in the graph, whose
// turns share what they pack and sum up weights' gradients at once. Turns of
// few rows or columns gain nothing by that.
constexpr int64_t kMostUnrolled = 16, kMostUnrolledSmall = 256;
constexpr int64_t kFewRows = 4, kFewColumns = 256;

// `now` where `shown` ([batch]) is true, else `before`.
Tensor Masked(const Tensor& shown, const Tensor& now, const Tensor& before) {
  if (!before) return Op("SelectV2", {shown, now, Op("ZerosLike", {now})});
  return Op("SelectV2", {shown, now, before});
}

// One step, with what a mask holds back. *out is null before the first.
void Advance(const ScanStep& step, const Tensor& row, const Tensor& shown,
             Tensor* out, std::vector<Tensor>* states) {
  std::vector<Tensor> next = *states;
  step(row, &next);
  Tensor now = next[0];
  if (shown) {
    const Tensor column = Op("ExpandDims", {shown, Int(-1)});
    now = Masked(column, now, *out);
    for (size_t i = 0; i < next.size(); ++i) {
      next[i] = Masked(column, next[i], (*states)[i]);
    }
  }
  *out = now;
  *states = std::move(next);
}

ScanResult Unrolled(const Tensor& rows, const Tensor& mask,
                    std::vector<Tensor> states, bool keep_all, int64_t count,
                    const ScanStep& step) {
  const AttrMap unpack = {{"num", count}, {"axis", 0}};
  const std::vector<Tensor> each = OpAll("Unpack", {rows}, unpack);
  std::vector<Tensor> shown(each.size()), kept;
  if (mask) shown = OpAll("Unpack", {mask}, unpack);
  Tensor out;
  for (size_t i = 0; i < each.size(); ++i) {
    Advance(step, each[i], shown[i], &out, &states);
    if (keep_all) kept.push_back(out);
  }
  ScanResult result{out, {}, std::move(states)};
  if (keep_all) {
    result.every = Op("Pack", kept, {{"N", count}, {"axis", 0}});
  }
  return result;
}

// The loop's values: turn, number of turns, last output, list of outputs, the
// states.
constexpr size_t kStates = 4;

Tensor NewList(const Tensor& like, const Tensor& count) {
  return Op("TensorListReserve", {ShapeOf(like), count},
            {{"element_dtype", Core(like.dtype())},
             {"shape_type", headrace::DType::kInt32}});
}

// The rows of `t` as a list: the gradient of a row that is read from `t` itself
// would be as large as all of them, in each turn.
Tensor RowShape(const Tensor& t) {
  const auto sizes = t.shape();
  std::vector<int64_t> row;
  for (int d = 1; d < sizes.rank(); ++d) row.push_back(sizes[d]);
  return Ints(row);
}
Tensor ListOf(const Tensor& t) {
  return Op("TensorListFromTensor", {t, RowShape(t)},
            {{"element_dtype", Core(t.dtype())},
             {"shape_type", headrace::DType::kInt32}});
}
Tensor ItemOf(const Tensor& list, const Tensor& i, const Tensor& t) {
  return Op("TensorListGetItem", {list, i, RowShape(t)},
            {{"element_dtype", Core(t.dtype())}});
}

ScanResult Looped(const Tensor& rows, const Tensor& mask,
                  std::vector<Tensor> states, bool keep_all,
                  const ScanStep& step) {
  const Tensor count =
      Op("StridedSlice", {ShapeOf(rows), Ints({0}), Ints({1}), Ints({1})},
         {{"shrink_axis_mask", 1}});
  const Tensor zeros = Op("ZerosLike", {states[0]});
  std::vector<Tensor> inputs = {Int(0), count, zeros,
                                NewList(zeros, keep_all ? count : Int(0))};
  inputs.insert(inputs.end(), states.begin(), states.end());
  const auto listed = [](const Tensor& t) { return t ? ListOf(t) : t; };
  const Tensor row_list = listed(rows), mask_list = listed(mask);
  const auto holds = [](absl::Span<const Value> args) {
    const std::vector<Tensor> in = TensorsOf(args);
    return ValuesOf({in[0] < in[1]});
  };
  const auto turn = [&](absl::Span<const Value> args) {
    const std::vector<Tensor> in = TensorsOf(args);
    const auto at = [&](const Tensor& list, const Tensor& t) {
      return t ? ItemOf(list, in[0], t) : t;
    };
    std::vector<Tensor> now(in.begin() + kStates, in.end());
    Tensor out = in[2];
    Advance(step, at(row_list, rows), at(mask_list, mask), &out, &now);
    Tensor list = in[3];
    if (keep_all) list = Op("TensorListSetItem", {list, in[0], out});
    std::vector<Tensor> next = {in[0] + Int(1), in[1], out, list};
    next.insert(next.end(), now.begin(), now.end());
    return ValuesOf(next);
  };
  const std::vector<Value> enter = ValuesOf(inputs);
  std::vector<headrace::Shape> shapes;
  for (const Value& v : enter) shapes.push_back(v.shape());
  const std::vector<Tensor> last =
      TensorsOf(EmitWhile("recurrent", enter, shapes, holds, turn));
  ScanResult result{last[2], {}, {last.begin() + kStates, last.end()}};
  if (keep_all) {
    result.every = Op("TensorListStack", {last[3], ShapeOf(zeros)},
                      {{"element_dtype", Core(zeros.dtype())}});
  }
  return result;
}

}  // namespace

ScanResult ScanOver(const Tensor& rows, const Tensor& mask,
                    std::vector<Tensor> states, bool keep_all,
                    const ScanStep& step) {
  const int64_t count = rows.shape()[0];
  if (count == 0) {
    Throw(ErrorCode::kInvalidArgument,
          "A recurrent layer needs at least one time step");
  }
  const int64_t batch = rows.shape()[1], columns = rows.shape()[2];
  const bool small = (batch >= 0 && batch <= kFewRows) ||
                     (columns >= 0 && columns < kFewColumns);
  const int64_t most = small ? kMostUnrolledSmall : kMostUnrolled;
  if (count > 0 && (count <= most || CurrentEmitter()->is_eager())) {
    return Unrolled(rows, mask, std::move(states), keep_all, count, step);
  }
  return Looped(rows, mask, std::move(states), keep_all, step);
}

}  // namespace headrace::tf::internal
