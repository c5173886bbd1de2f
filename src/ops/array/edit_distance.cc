#include <algorithm>
#include <array>
#include <limits>

#include "op/op.h"

namespace headrace {
namespace {

// One of the two sparse tensors: inputs first..first+2.
struct Sequences {
  const Tensor& indices;
  const Tensor& values;
  const Tensor& shape;
};

Status CheckSequences(ShapeContext& c, int first, StringView name) {
  const Shape &indices = c.input(first), &values = c.input(first + 1),
              &shape = c.input(first + 2);
  if (indices.known_rank() && indices.rank() != 2) {
    return InvalidArgument(
        name, "_indices should be a matrix, but got shape: ", indices);
  }
  if (values.known_rank() && values.rank() != 1) {
    return InvalidArgument(
        name, "_values should be a vector, but got shape: ", values);
  }
  if (shape.known_rank() && shape.rank() != 1) {
    return InvalidArgument(name,
                           "_shape should be a vector, but got shape: ", shape);
  }
  if (!indices.known_rank()) return OkStatus();
  if (values.known_rank() && values[0] >= 0 && indices[0] >= 0 &&
      values[0] != indices[0]) {
    return InvalidArgument("Expected ", name, "_values.NumElements == #rows(",
                           name, "_indices), their shapes are: ", values,
                           " and ", indices);
  }
  if (shape.known_rank() && shape[0] >= 0 && indices[1] >= 0 &&
      shape[0] != indices[1]) {
    return InvalidArgument("Expected ", name, "_shape.NumElements == #cols(",
                           name, "_indices), their shapes are: ", shape,
                           " and ", indices);
  }
  return OkStatus();
}

Status EditDistanceRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSequences(c, 0, "hypothesis"));
  HR_RETURN_IF_ERROR(CheckSequences(c, 3, "truth"));
  const Shape &a = c.input(2), &b = c.input(5);
  if (a.fully_known() && b.fully_known() && a[0] != b[0]) {
    return InvalidArgument(
        "Expected hypothesis_shape.NumElements == "
        "truth_shape.NumElements, got ",
        a[0], " and ", b[0]);
  }
  absl::InlinedVector<int64_t, 8> x, y;
  if (!c.IntValues(2, &x) || !c.IntValues(5, &y)) return OkStatus();
  if (x.size() < 2) {
    return InvalidArgument("Expected at least 2 dimensions, got ", x.size());
  }
  Shape out;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    if (x[i] < 0 || y[i] < 0) {
      return InvalidArgument("EditDistance: sizes must not be negative");
    }
    // Upstream: the larger of both sides' sizes.
    out.AddDim(std::max(x[i], y[i]));
  }
  HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <typename T>
int64_t Levenshtein(const T* a, int64_t n, const T* b, int64_t m) {
  // One row of the table is enough: the corner is remembered.
  std::vector<int64_t> row(m + 1);
  for (int64_t j = 0; j <= m; ++j) row[j] = j;
  for (int64_t i = 0; i < n; ++i) {
    int64_t corner = row[0];
    row[0] = i + 1;
    for (int64_t j = 0; j < m; ++j) {
      const int64_t up = row[j + 1];
      row[j + 1] = std::min({up + 1, row[j] + 1, corner + !(a[i] == b[j])});
      corner = up;
    }
  }
  return row[m];
}

// Where group [begin, ...) of sequence values ends: rows that share all
// indices but the last.
int64_t GroupEnd(const Tensor& indices, int64_t begin) {
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  const int64_t* x = indices.data<int64_t>();
  int64_t end = begin + 1;
  // Sparse indices are in order, so that a sequence's values are neighbours.
  while (end < n && std::equal(x + begin * rank, x + begin * rank + rank - 1,
                               x + end * rank)) {
    ++end;
  }
  return end;
}

// The output element that row `at` belongs to; Internal when outside.
StatusOr<int64_t> PlaceOf(const Tensor& indices, int64_t at,
                          const Tensor& out) {
  const int64_t rank = indices.dim(1);
  const int64_t* x = indices.data<int64_t>() + at * rank;
  int64_t place = 0;
  bool inside = true;
  for (int d = 0; d + 1 < rank; ++d) {
    inside &= x[d] >= 0 && x[d] < out.dim(d);
    // The text shows upstream's number, which is one of the indices.
    place = inside ? place * out.dim(d) + x[d] : x[d];
  }
  if (!inside) {
    // As upstream: no InvalidArgument.
    return Internal("Got an inner product ", place,
                    " which would require writing to outside of the buffer "
                    "for the output tensor (max elements ",
                    out.num_elements(), ")");
  }
  return place;
}

template <typename T>
Status Compare(const Sequences& h, const Sequences& t, bool normalize,
               Tensor& out) {
  float* y = out.data<float>();
  // Where neither side has a sequence the distance is 0.
  std::fill_n(y, out.num_elements(), 0.f);
  const T *hv = h.values.data<T>(), *tv = t.values.data<T>();
  // Groups by place: each side's [begin, end).
  std::vector<std::array<int64_t, 4>> groups(out.num_elements(), {0, 0, 0, 0});
  for (int side = 0; side < 2; ++side) {
    const Tensor& indices = side ? t.indices : h.indices;
    for (int64_t b = 0; b < indices.dim(0);) {
      const int64_t e = GroupEnd(indices, b);
      HR_ASSIGN_OR_RETURN(int64_t place, PlaceOf(indices, b, out));
      groups[place][2 * side] = b;
      groups[place][2 * side + 1] = e;
      b = e;
    }
  }
  for (size_t k = 0; k < groups.size(); ++k) {
    const auto& g = groups[k];
    const int64_t n = g[1] - g[0], m = g[3] - g[2];
    const auto d = static_cast<float>(Levenshtein(hv + g[0], n, tv + g[2], m));
    if (!normalize || d == 0)
      y[k] = d;
    else if (m == 0)
      y[k] = std::numeric_limits<float>::infinity();
    else
      y[k] = d / static_cast<float>(m);
  }
  return OkStatus();
}

Status EditDistance(KernelContext& c) {
  // Nothing to normalise by, and something differs.
  const Sequences h{c.input(0), c.input(1), c.input(2)};
  const Sequences t{c.input(3), c.input(4), c.input(5)};
  Status status =
      Unimplemented("EditDistance of ", DTypeName(h.values.dtype()));
  auto run = [&](auto tag) {
    status = Compare<typename decltype(tag)::type>(
        h, t, c.op().bool_attr("normalize"), c.output(0));
  };
  DispatchDType(h.values.dtype(), NumberTypes{}, run);
  DispatchDType(h.values.dtype(), TypeList<std::string, bool>{}, run);
  return status;
}

HR_OP(EditDistance)
    .Input("hypothesis_indices: int64")
    .Input("hypothesis_values: T")
    .Input("hypothesis_shape: int64")
    .Input("truth_indices: int64")
    .Input("truth_values: T")
    .Input("truth_shape: int64")
    .Output("output: float")
    .Attr("normalize: bool = true")
    .Attr("T: type")
    .Doc("The Levenshtein distances between sequences of two sparse tensors.")
    .Shape(EditDistanceRule)
    .NoGradient()
    .Cpu(Compute<EditDistance>);

}  // namespace
}  // namespace headrace
