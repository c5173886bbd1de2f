#include "op/op.h"
#include "op/shared_refusal.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status PartitionRule(ShapeContext& c) {
  const Shape &data = c.input(0), &partitions = c.input(1);
  if (!data.known_rank() || !partitions.known_rank()) return OkStatus();
  if (data.rank() < partitions.rank() ||
      !data.Sub(0, partitions.rank()).CompatibleWith(partitions)) {
    return c.Refuse(
        NotPrefixed(data, partitions),
        InvalidArgument(
            "data.shape must start with partitions.shape, got data.shape = ",
            data, ", partitions.shape = ", partitions));
  }
  Shape out = data.Sub(partitions.rank(), data.rank());
  out.InsertDim(0, Shape::kUnknown);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return OkStatus();
}

// "[1,2]" of element `at`, nothing for a scalar.
std::string PositionText(const Shape& s, int64_t at) {
  std::string text;
  for (int d = s.rank() - 1; d >= 0; --d) {
    text = absl::StrCat(at % s[d], text.empty() ? "" : ",", text);
    at /= s[d];
  }
  return s.rank() == 0 ? "" : absl::StrCat("[", text, "]");
}

Status Partition(KernelContext& c) {
  const Tensor &data = c.input(0), &partitions = c.input(1);
  const int64_t n = partitions.num_elements(), parts = c.num_outputs();
  const int32_t* p = partitions.data<int32_t>();
  // First counted, as outputs need their sizes.
  std::vector<int64_t> count(parts, 0);
  for (int64_t i = 0; i < n; ++i) {
    if (p[i] < 0 || p[i] >= parts) {
      return InvalidArgument("partitions", PositionText(partitions.shape(), i),
                             " = ", p[i], " is not in [0, ", parts, ")");
    }
    ++count[p[i]];
  }
  Shape shape = data.shape().Sub(partitions.rank(), data.rank());
  const int64_t slice = shape.num_elements();
  shape.InsertDim(0, 0);
  std::vector<int64_t> next(parts, 0);
  for (int k = 0; k < parts; ++k) {
    shape.set_dim(0, count[k]);
    HR_RETURN_IF_ERROR(c.Allocate(k, shape));
  }
  if (slice == 0) return OkStatus();
  if (IsPlain(data.dtype())) {
    std::vector<char*> tos(parts);
    for (int k = 0; k < parts; ++k) tos[k] = At(c.output(k), 0);
    DealRows(slice * DTypeSize(data.dtype()), data.raw(), p, n, tos.data());
    return OkStatus();
  }
  // Neighbours of one partition move together.
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && p[end] == p[i]) ++end;
    CopyRun(data.dtype(), At(data, i * slice),
            At(c.output(p[i]), next[p[i]] * slice), (end - i) * slice);
    next[p[i]] += end - i;
    i = end;
  }
  return OkStatus();
}

// Each row's number goes the way of the row, and tells where it came from.
Status PartitionGradient(GradientContext& g) {
  const Value &data = g.input(0), &partitions = g.input(1);
  const int64_t parts = g.num_outputs();
  Value shape = g.ShapeOf(partitions);
  Value count = g("Prod", {shape, g.Int32(0)});
  Value numbers =
      g("Reshape", {g("Range", {g.Int32(0), count, g.Int32(1)}), shape});
  ValueList stitched = g.All("DynamicPartition", {numbers, partitions},
                             {{"num_partitions", parts}});
  if (!g.ok()) return g.status();
  for (int i = 0; i < parts; ++i) stitched.push_back(g.grad_or_zeros(i));
  // No row is named twice, so that any order will do.
  Value rows = g("ParallelDynamicStitch", stitched, {{"N", parts}});
  if (!g.ok()) return g.status();
  g.set(0, g("Reshape", {rows, g.ShapeOf(data)}));
  return g.status();
}

HR_OP(DynamicPartition)
    .Input("data: T")
    .Input("partitions: int32")
    .Output("outputs: num_partitions * T")
    .Attr("num_partitions: int >= 1")
    .Attr("T: type")
    .Doc("Deals the slices of data out to as many tensors as partitions says.")
    .Shape(PartitionRule)
    .Gradient(PartitionGradient)
    .Cpu(ComputeOwn<Partition>);

}  // namespace
}  // namespace headrace
