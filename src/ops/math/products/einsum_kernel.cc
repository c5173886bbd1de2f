#include "ops/math/products/einsum_kernel.h"

#include <algorithm>

#include "ops/array/block_copy.h"
#include "ops/math/products/gemm.h"
#include "ops/math/reductions/reduce.h"

namespace headrace {
namespace {

using Sizes = absl::InlinedVector<int64_t, 8>;

// A tensor under labels: one dimension for each, with its stride.
struct View {
  Labels labels;
  Sizes dims, strides;
  const void* data = nullptr;
  Tensor owned;

  int Find(int label) const {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == label) return static_cast<int>(i);
    }
    return -1;
  }
  void Remove(int i) {
    labels.erase(labels.begin() + i);
    dims.erase(dims.begin() + i);
    strides.erase(strides.begin() + i);
  }
};

// Repeated labels become one, along the diagonal.
View ViewOf(const Labels& labels, const Shape& shape, const void* data) {
  Sizes dims(shape.dims().begin(), shape.dims().end());
  const Sizes strides = RowMajorStrides(dims);
  View v;
  v.data = data;
  for (size_t i = 0; i < labels.size(); ++i) {
    const int at = v.Find(labels[i]);
    if (at >= 0) {
      // One step along the diagonal is a step in both dimensions.
      v.strides[at] += strides[i];
      continue;
    }
    v.labels.push_back(labels[i]);
    v.dims.push_back(dims[i]);
    v.strides.push_back(strides[i]);
  }
  return v;
}

// Copies all elements of a strided block to another.
void CopyStrided(DType dtype, const Sizes& dims, const void* from,
                 const Sizes& from_strides, void* to, const Sizes& to_strides) {
  BlockDims block;
  for (size_t i = 0; i < dims.size(); ++i) {
    block.push_back({dims[i], from_strides[i], to_strides[i]});
  }
  CopyBlock(dtype, from, to, std::move(block));
}

// The view's elements, dense, in the order of `labels` (all of its own).
StatusOr<View> Gathered(const View& v, const Labels& labels, DType dtype) {
  View out;
  Sizes from;
  int64_t count = 1;
  for (int label : labels) {
    const int at = v.Find(label);
    out.labels.push_back(label);
    out.dims.push_back(v.dims[at]);
    from.push_back(v.strides[at]);
    count *= v.dims[at];
  }
  out.strides = RowMajorStrides(out.dims);
  HR_ASSIGN_OR_RETURN(out.owned, Tensor::Allocate(dtype, Shape{count}));
  out.data = out.owned.raw();
  CopyStrided(dtype, out.dims, v.data, from, out.owned.raw(), out.strides);
  return out;
}

// Sums over the labels that nobody else has.
Status SumAlone(View& v, const Labels& others, const Labels& out, DType dtype) {
  Labels kept, gone;
  for (int l : v.labels) {
    const bool shared = std::count(others.begin(), others.end(), l) ||
                        std::count(out.begin(), out.end(), l);
    (shared ? kept : gone).push_back(l);
  }
  if (gone.empty()) return OkStatus();
  Labels order = kept;
  order.insert(order.end(), gone.begin(), gone.end());
  HR_ASSIGN_OR_RETURN(View dense, Gathered(v, order, dtype));
  int64_t outer = 1, n = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    (i < kept.size() ? outer : n) *= dense.dims[i];
  }
  View sum;
  sum.labels = kept;
  sum.dims.assign(dense.dims.begin(), dense.dims.begin() + kept.size());
  sum.strides = RowMajorStrides(sum.dims);
  // Half and bfloat16 are summed in float.
  const DType wide = LoopsForReduction(Reduction::kSum, dtype).out;
  if (wide == DType::kInvalid) {
    return Unimplemented("Einsum of ", DTypeName(dtype));
  }
  HR_ASSIGN_OR_RETURN(sum.owned, Tensor::Allocate(wide, Shape{outer}));
  HR_RETURN_IF_ERROR(ReduceMiddle(Reduction::kSum, dtype, dense.data, outer, n,
                                  1, sum.owned.raw()));
  if (wide != dtype) {
    HR_ASSIGN_OR_RETURN(Tensor narrow, Tensor::Allocate(dtype, Shape{outer}));
    DispatchDType(dtype, TypeList<half, bfloat16>{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < outer; ++i) {
        narrow.data<T>()[i] = static_cast<T>(sum.owned.data<float>()[i]);
      }
    });
    sum.owned = std::move(narrow);
  }
  sum.data = sum.owned.raw();
  v = std::move(sum);
  return OkStatus();
}

// The labels of a product by their part in it.
struct Groups {
  Labels batch, m, n, k;
};

Groups GroupsOf(const View& a, const View& b, const Labels& out) {
  Groups g;
  for (int l : out) {
    const bool in_a = a.Find(l) >= 0, in_b = b.Find(l) >= 0;
    // In both and in the result: a batch; in one only: rows or columns; in both
    // but not in the result: summed.
    (in_a && in_b ? g.batch : in_a ? g.m : g.n).push_back(l);
  }
  for (int l : a.labels) {
    if (b.Find(l) >= 0 && !std::count(out.begin(), out.end(), l)) {
      g.k.push_back(l);
    }
  }
  return g;
}

// A group of labels in a view as one dimension: true when they lie in memory
// like one, whose stride goes to *stride (1 when it has a single element).
bool GroupStride(const View& v, const Labels& group, int64_t* stride) {
  int64_t next = -1;  // what the next stride outwards must be
  *stride = 1;
  for (size_t i = group.size(); i-- > 0;) {
    const int at = v.Find(group[i]);
    // The stride of a single element does not matter.
    if (v.dims[at] == 1) continue;
    if (next < 0) {
      *stride = v.strides[at];
    } else if (v.strides[at] != next) {
      return false;
    }
    next = v.strides[at] * v.dims[at];
  }
  return true;
}

int64_t GroupSize(const View& v, const Labels& group) {
  int64_t n = 1;
  for (int l : group) n *= v.dims[v.Find(l)];
  return n;
}

// Makes two groups of a view single dimensions, copying it if need be.
Status Arrange(View& v, const Groups& g, const Labels& rows,
               const Labels& columns, DType dtype, int64_t* row,
               int64_t* column) {
  // Most equations need no copy: the loops take any strides.
  if (GroupStride(v, rows, row) && GroupStride(v, columns, column)) {
    return OkStatus();
  }
  Labels order = g.batch;
  order.insert(order.end(), rows.begin(), rows.end());
  order.insert(order.end(), columns.begin(), columns.end());
  HR_ASSIGN_OR_RETURN(v, Gathered(v, order, dtype));
  GroupStride(v, rows, row);
  GroupStride(v, columns, column);
  return OkStatus();
}

// The view's sizes and strides along those labels.
Sizes SizesOf(const View& v, const Labels& labels) {
  Sizes sizes;
  for (int l : labels) sizes.push_back(v.dims[v.Find(l)]);
  return sizes;
}
Sizes StridesOf(const View& v, const Labels& labels) {
  Sizes strides;
  for (int l : labels) strides.push_back(v.strides[v.Find(l)]);
  return strides;
}

// Nothing is summed and nothing stretched: element by element.
Status Multiply(const View& a, const View& b, const Groups& g, const View& c,
                DType dtype) {
  HR_ASSIGN_OR_RETURN(View x, Gathered(a, g.batch, dtype));
  HR_ASSIGN_OR_RETURN(View y, Gathered(b, g.batch, dtype));
  const int64_t n = GroupSize(x, g.batch);
  bool known = DispatchDType(dtype, NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = x.owned.data<T>();
    const T* by = y.owned.data<T>();
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(to[i] * by[i]);
  });
  if (!known) return Unimplemented("Einsum of ", DTypeName(dtype));
  // The view of the result is written; views of operands share its type.
  CopyStrided(dtype, x.dims, x.data, x.strides, const_cast<void*>(c.data),
              StridesOf(c, g.batch));
  return OkStatus();
}

Status ViewProduct(View a, View b, View c, DType dtype) {
  Groups g = GroupsOf(a, b, c.labels);
  // A product of matrices of one element would cost a call for each.
  if (g.m.empty() && g.n.empty() && g.k.empty()) {
    return Multiply(a, b, g, c, dtype);
  }
  int64_t row, column;
  bool fits = GroupStride(c, g.m, &row) && GroupStride(c, g.n, &column);
  // C's columns must be neighbours: else the transposed product may do.
  // (A B)^T = B^T A^T: the loops write rows only.
  if (fits && column != 1 && row == 1) {
    std::swap(a, b);
    std::swap(g.m, g.n);
    std::swap(row, column);
  }
  View made = c;
  // Neither way: into memory of its own, copied where it belongs afterwards.
  if (!fits || column != 1) {
    Labels order = g.batch;
    order.insert(order.end(), g.m.begin(), g.m.end());
    order.insert(order.end(), g.n.begin(), g.n.end());
    made = View();
    int64_t count = 1;
    for (int l : order) {
      made.labels.push_back(l);
      made.dims.push_back(c.dims[c.Find(l)]);
      count *= made.dims.back();
    }
    made.strides = RowMajorStrides(made.dims);
    HR_ASSIGN_OR_RETURN(made.owned, Tensor::Allocate(dtype, Shape{count}));
    made.data = made.owned.raw();
    GroupStride(made, g.m, &row);
  }
  GemmDims d;
  d.m = GroupSize(a, g.m);
  d.n = GroupSize(b, g.n);
  d.k = GroupSize(a, g.k);
  d.c_row = row;
  HR_RETURN_IF_ERROR(Arrange(a, g, g.m, g.k, dtype, &d.a_row, &d.a_col));
  HR_RETURN_IF_ERROR(Arrange(b, g, g.k, g.n, dtype, &d.b_row, &d.b_col));
  const std::vector<GemmOffsets> offsets =
      BatchOffsets(SizesOf(a, g.batch), StridesOf(a, g.batch),
                   StridesOf(b, g.batch), StridesOf(made, g.batch));
  HR_RETURN_IF_ERROR(BatchGemm(dtype, d, a.data, b.data,
                               const_cast<void*>(made.data), offsets));
  if (made.data == c.data) return OkStatus();
  CopyStrided(dtype, made.dims, made.data, made.strides,
              const_cast<void*>(c.data), StridesOf(c, made.labels));
  return OkStatus();
}

}  // namespace

Status Contract(absl::Span<const Tensor* const> inputs,
                absl::Span<const Labels> labels, const Labels& out_labels,
                const Tensor& out) {
  const DType dtype = out.dtype();
  if (out.num_elements() == 0) return OkStatus();
  View c = ViewOf(out_labels, out.shape(), out.raw());
  // Repeated labels in the result: only its diagonal is written, the rest is 0.
  if (c.labels.size() < out_labels.size()) {
    Tensor zeroed = out;
    FillZero(zeroed);
  }
  View a = ViewOf(labels[0], inputs[0]->shape(), inputs[0]->raw());
  if (inputs.size() == 1) {
    HR_RETURN_IF_ERROR(SumAlone(a, {}, c.labels, dtype));
    CopyStrided(dtype, SizesOf(a, c.labels), a.data, StridesOf(a, c.labels),
                out.raw(), c.strides);
    return OkStatus();
  }
  View b = ViewOf(labels[1], inputs[1]->shape(), inputs[1]->raw());
  // A dimension of 1 that the other side stretches is not there.
  for (View* v : {&a, &b}) {
    const View& other = v == &a ? b : a;
    for (int i = static_cast<int>(v->labels.size()) - 1; i >= 0; --i) {
      const int at = other.Find(v->labels[i]);
      if (v->dims[i] == 1 && at >= 0 && other.dims[at] != 1) v->Remove(i);
    }
  }
  HR_RETURN_IF_ERROR(SumAlone(a, b.labels, c.labels, dtype));
  HR_RETURN_IF_ERROR(SumAlone(b, a.labels, c.labels, dtype));
  return ViewProduct(std::move(a), std::move(b), std::move(c), dtype);
}

}  // namespace headrace
