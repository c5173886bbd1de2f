#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/ragged/splits.h"

namespace headrace {
namespace {

using Strings = std::vector<std::string>;

// Row partitions: how many rows there are, and which row each value is in.
struct Partitions {
  bool first_size = false;  // partition 0 is the number of rows
  int levels = 0;
};

StatusOr<Partitions> PartitionsOf(const Strings& types, int inputs) {
  Partitions p;
  if (static_cast<int>(types.size()) != inputs || types.empty()) {
    return InvalidArgument(
        "row_partition_types and row_partition_tensors "
        "must have the same length, got ",
        types.size(), " and ", inputs);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const bool size = types[i] == "FIRST_DIM_SIZE";
    if (types[i] != "VALUE_ROWIDS" && types[i] != "ROW_SPLITS" &&
        !(size && i == 0)) {
      return InvalidArgument("Unsupported row partition type ", types[i],
                             " at position ", i);
    }
  }
  p.first_size = types[0] == "FIRST_DIM_SIZE";
  p.levels = static_cast<int>(types.size()) - (p.first_size ? 1 : 0);
  return p;
}

Status ToTensorRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Partitions p,
                      PartitionsOf(c.op().attr<Strings>("row_partition_types"),
                                   c.num_inputs() - 3));
  const Shape& values = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtMost(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(values, 1));
  const Tensor* given = c.value(0);
  Shape out = Shape::UnknownRank();
  if (given && given->rank() == 1) {
    HR_ASSIGN_OR_RETURN(out, c.ShapeValue(0));
  }
  if (!values.known_rank()) {
    c.set_output(0, out);
    return OkStatus();
  }
  const int rank = p.levels + values.rank();
  if (!out.known_rank()) out = Shape::UnknownOfRank(rank);
  if (out.rank() != rank) {
    return InvalidArgument("tf.RaggedTensor has rank ", rank,
                           ", but the requested shape has rank ", out.rank());
  }
  for (int d = 1; d < values.rank(); ++d) {
    const int64_t have = values[d];
    int64_t want = out[p.levels + d];
    if (want >= 0 && have >= 0 && want != have) {
      return InvalidArgument("Inner dimension ", d, " of values is ", have,
                             " but the requested shape says ", want);
    }
    if (want < 0) out.set_dim(p.levels + d, have);
  }
  c.set_output(0, out);
  return OkStatus();
}

// Row number and place in its row of every value of one level.
struct Level {
  std::vector<int64_t> row, place;
  int64_t longest = 0;
};

StatusOr<Level> LevelOf(const Tensor& t, bool splits, int64_t rows) {
  Level level;
  if (t.rank() != 1) {
    return InvalidArgument("row partitions must be vectors, got shape ",
                           t.shape());
  }
  if (splits) {
    HR_RETURN_IF_ERROR(CheckSplits(t, -1));
    if (t.num_elements() - 1 != rows) {
      return InvalidArgument("row_splits has ", t.num_elements() - 1,
                             " rows but ", rows, " are needed");
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = t.IntAt(r); k < t.IntAt(r + 1); ++k) {
        level.row.push_back(r);
        level.place.push_back(k - t.IntAt(r));
      }
      level.longest = std::max(level.longest, t.IntAt(r + 1) - t.IntAt(r));
    }
    return level;
  }
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const int64_t row = t.IntAt(i);
    const int64_t before = i ? level.row.back() : 0;
    if (row < before || row >= rows) {
      return InvalidArgument("value_rowids must be sorted and in [0, ", rows,
                             "), got ", row, " at position ", i);
    }
    level.place.push_back(i && row == before ? level.place.back() + 1 : 0);
    level.row.push_back(row);
    level.longest = std::max(level.longest, level.place.back() + 1);
  }
  return level;
}

struct Plan {
  Shape shape;                   // of the result
  std::vector<int64_t> targets;  // each value row's place in it; -1: cut off
};

StatusOr<Plan> PlanOf(const KernelContext& c) {
  const auto& types = c.op().attr<Strings>("row_partition_types");
  HR_ASSIGN_OR_RETURN(Partitions p, PartitionsOf(types, c.num_inputs() - 3));
  const Tensor& first = c.input(3);
  const bool by_ids = types[0] == "VALUE_ROWIDS";
  if (by_ids) {
    return InvalidArgument("Cannot handle VALUE_ROWIDS in first dimension");
  }
  if (first.rank() != (p.first_size ? 0 : 1) || first.num_elements() < 1) {
    return InvalidArgument("the first row partition has shape ", first.shape());
  }
  int64_t rows = p.first_size ? first.IntAt(0) : first.num_elements() - 1;
  if (rows < 0) return InvalidArgument("negative number of rows: ", rows);
  const int64_t all_rows = rows;
  std::vector<Level> levels;
  for (int k = 0; k < p.levels; ++k) {
    const int at = k + (p.first_size ? 1 : 0);
    HR_ASSIGN_OR_RETURN(
        Level level, LevelOf(c.input(3 + at), types[at] == "ROW_SPLITS", rows));
    rows = static_cast<int64_t>(level.row.size());
    levels.push_back(std::move(level));
  }
  const Tensor &shape = c.input(0), &values = c.input(1);
  if (rows != values.dim(0)) {
    return InvalidArgument("the row partitions describe ", rows,
                           " values but there are ", values.dim(0));
  }
  Shape out{all_rows};
  for (const Level& level : levels) out.AddDim(level.longest);
  for (int d = 1; d < values.rank(); ++d) out.AddDim(values.dim(d));
  for (int64_t d = 0; shape.rank() == 1 && d < out.rank(); ++d) {
    if (shape.IntAt(d) >= 0) out.set_dim(static_cast<int>(d), shape.IntAt(d));
  }
  Plan plan;
  HR_ASSIGN_OR_RETURN(plan.shape, Shape::Make(out.dims()));
  std::vector<int64_t> parents(all_rows);
  for (int64_t r = 0; r < all_rows; ++r) parents[r] = r < out[0] ? r : -1;
  for (int k = 0; k < p.levels; ++k) {
    std::vector<int64_t> next(levels[k].row.size());
    for (size_t i = 0; i < next.size(); ++i) {
      const int64_t parent = parents[levels[k].row[i]];
      const int64_t place = levels[k].place[i];
      next[i] =
          parent < 0 || place >= out[k + 1] ? -1 : parent * out[k + 1] + place;
    }
    parents = std::move(next);
  }
  plan.targets = std::move(parents);
  return plan;
}

Status ToTensor(KernelContext& c) {
  const Tensor &shape = c.input(0), &values = c.input(1),
               &fallback = c.input(2);
  if (shape.rank() == 0 && shape.IntAt(0) != -1) {
    return InvalidArgument("a scalar shape must be -1, got ", shape.IntAt(0));
  }
  HR_ASSIGN_OR_RETURN(Plan plan, PlanOf(c));
  const Shape inner = values.shape().Sub(1, values.rank());
  const int64_t width = inner.num_elements();
  const int64_t fill = fallback.num_elements();
  // The default is one row of values, or repeats along their outer dimensions.
  const int lead = inner.rank() - fallback.rank();
  if (lead < 0 ||
      (fill != 1 && inner.Sub(lead, inner.rank()) != fallback.shape())) {
    return InvalidArgument("default_value of shape ", fallback.shape(),
                           " cannot be broadcast to the values' inner shape ",
                           inner);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, plan.shape));
  DispatchElement(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = static_cast<T*>(c.output(0).raw());
    const T* pad = static_cast<const T*>(fallback.raw());
    const int64_t n = plan.shape.num_elements();
    if (fill == 1) {
      std::fill_n(y, n, *pad);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = pad[i % fill];
    }
    const T* x = static_cast<const T*>(values.raw());
    for (size_t i = 0; i < plan.targets.size(); ++i) {
      if (plan.targets[i] < 0) continue;
      std::copy_n(x + i * width, width, y + plan.targets[i] * width);
    }
  });
  return OkStatus();
}

// Numbers the values, lays the numbers out the same way, and sees where they
// came to lie.
Status ToTensorGradient(GradientContext& g) {
  const auto& types = g.op().attr<Strings>("row_partition_types");
  HR_ASSIGN_OR_RETURN(Partitions p, PartitionsOf(types, g.num_inputs() - 3));
  const Value &values = g.input(1), &fallback = g.input(2);
  const DType wide = DType::kInt64;
  Value dy = g.grad();
  Value sizes = g("Shape", {values}, {{"out_type", wide}});
  Value rows = g("GatherV2", {sizes, g.Int32(0), g.Int32(0)});
  Value numbers = g("Range", {g.Scalar(wide, 0), rows, g.Scalar(wide, 1)});
  Value shape = g.input(0);
  if (!shape.shape().IsScalar()) {
    shape = g("Slice", {shape, g.Int32s({0}), g.Int32s({p.levels + 1})});
  }
  std::vector<Value> inputs = {shape, numbers, g.Scalar(wide, -1)};
  for (int i = 3; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  Value laid =
      g("RaggedTensorToTensor", inputs, {{"row_partition_types", types}});
  Value taken = g("GreaterEqual", {laid, g.Scalar(wide, 0)});
  Value used = g("Where", {taken});
  Value ids = g("ExpandDims", {g("GatherNd", {laid, used}), g.Int32(1)});
  g.set(1, g("ScatterNd", {ids, g("GatherNd", {dy, used}), sizes}));
  Value unused = g("Where", {g("LogicalNot", {taken})});
  Value rest = g("Sum", {g("GatherNd", {dy, unused}), g.Int32(0)});
  if (!g.ok()) return g.status();
  g.set(2, g.ReduceTo(rest, fallback));
  return g.status();
}

HR_OP(RaggedTensorToTensor)
    .Input("shape: Tshape")
    .Input("values: T")
    .Input("default_value: T")
    .Input("row_partition_tensors: num_row_partition_tensors * Tindex")
    .Output("result: T")
    .Attr("T: type")
    .Attr("Tindex: {int64, int32}")
    .Attr("Tshape: {int64, int32}")
    .Attr("num_row_partition_tensors: int >= 1")
    .Attr("row_partition_types: list(string)")
    .Doc("A ragged tensor as a dense one, padded and cut to a shape.")
    .Shape(ToTensorRule)
    .Gradient(ToTensorGradient)
    .Cpu(ComputeOwn<ToTensor>);

}  // namespace
}  // namespace headrace
