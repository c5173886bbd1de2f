#include <algorithm>

#include "op/op.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status StitchRule(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  Shape rest = Shape::UnknownRank();
  int64_t rows = 0;
  bool all_known = true;
  for (int i = 0; i < n; ++i) {
    const Shape &indices = c.input(i), &data = c.input(n + i);
    if (const Tensor* t = c.value(i)) {
      for (int32_t id : t->span<int32_t>()) {
        // One more than the largest index.
        rows = std::max(rows, int64_t{id} + 1);
      }
    } else {
      all_known = false;
    }
    if (!indices.known_rank() || !data.known_rank()) continue;
    if (data.rank() < indices.rank() ||
        !data.Sub(0, indices.rank()).CompatibleWith(indices)) {
      return InvalidArgument("data[", i, "].shape = ", data,
                             " does not start with indices[", i,
                             "].shape = ", indices);
    }
    StatusOr<Shape> merged =
        MergeShapes(rest, data.Sub(indices.rank(), data.rank()));
    if (!merged.ok()) {
      return InvalidArgument(
          "Need data[0].shape[", c.input(0).rank(), ":] = data[", i, "].shape[",
          indices.rank(), ":], got data[0].shape = ", c.input(n), ", data[", i,
          "].shape = ", data, ", indices[0].shape = ", c.input(0), ", indices[",
          i, "].shape = ", indices);
    }
    rest = *std::move(merged);
  }
  if (rest.known_rank()) {
    rest.InsertDim(0, all_known ? rows : Shape::kUnknown);
    c.set_output(0, std::move(rest));
  }
  return OkStatus();
}

// Rows that no index names are zero.
Status Stitch(KernelContext& c) {
  const int n = c.num_inputs() / 2;
  Tensor& out = c.output(0);
  for (int i = 0; i < n; ++i) {
    const Tensor& indices = c.input(i);
    for (int64_t k = 0; k < indices.num_elements(); ++k) {
      const int32_t id = indices.data<int32_t>()[k];
      if (id < 0 || id >= out.dim(0)) {
        return InvalidArgument("indices[", k, "] is out of range");
      }
    }
  }
  const int64_t slice = out.shape().Product(1, out.rank());
  if (out.num_elements() == 0) return OkStatus();
  // New memory for objects is empty already.
  if (IsPlain(out.dtype())) FillZero(out);
  for (int i = 0; i < n; ++i) {
    const Tensor &indices = c.input(i), &data = c.input(n + i);
    if (IsPlain(out.dtype())) {
      ScatterRows(slice * DTypeSize(out.dtype()), data.raw(),
                  indices.data<int32_t>(), indices.num_elements(), out.raw());
      continue;
    }
    for (int64_t k = 0; k < indices.num_elements(); ++k) {
      CopyRun(out.dtype(), At(data, k * slice),
              At(out, indices.data<int32_t>()[k] * slice), slice);
    }
  }
  return OkStatus();
}

Status StitchGradient(GradientContext& g) {
  const int n = g.num_inputs() / 2;
  Value dy = g.grad();
  for (int i = 0; i < n; ++i) {
    // Also where a later slice overwrote the row: upstream looks at indices
    // alone.
    g.set(n + i, g("GatherV2", {dy, g.input(i), g.Int32(0)}));
  }
  return g.status();
}

OpBuilder StitchOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("indices: N * int32")
      .Input("data: N * T")
      .Output("merged: T")
      .Attr("N: int >= 1")
      .Attr("T: type")
      .Doc(doc)
      .Shape(StitchRule)
      .Gradient(StitchGradient)
      .GradientSkips({}, {0})
      .Cpu(Compute<Stitch>);
  return b;
}
[[maybe_unused]] const OpRegistrar kStitches[] = {
    StitchOp(
        "DynamicStitch",
        "Slices of several tensors put at given rows of one; where a row is "
        "named twice, the last slice stays."),
    StitchOp("ParallelDynamicStitch",
             "Slices of several tensors put at given rows of one; which slice "
             "stays where a row is named twice is not promised."),
};

}  // namespace
}  // namespace headrace
