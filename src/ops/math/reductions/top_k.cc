// TopK, TopKV2 and ApproxTopK: the largest elements along the last dimension.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

// Falling order; NaN first.
template <typename W>
bool Above(W a, W b) {
  return a > b || (a != a && b == b);
}

// A key whose rising order is the falling order of 32-bit numbers.
uint32_t KeyOf(float v) {
  if (v == 0) v = 0.0f;  // both zeros are equal
  const uint32_t b = __builtin_bit_cast(uint32_t, v);
  if (v != v) return 0;
  return ~(b & 0x80000000 ? ~b : b | 0x80000000);
}
uint32_t KeyOf(int32_t v) { return ~(static_cast<uint32_t>(v) ^ 0x80000000); }
uint32_t KeyOf(uint32_t v) { return ~v; }

template <typename T>
constexpr bool kHasKey =
    std::is_same_v<T, float> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, uint32_t>;

// Positions of a whole row in falling order, by counting 11 bits at a time.
template <typename T>
void RadixSort(const T* x, int64_t n, std::vector<uint64_t>& a,
               std::vector<uint64_t>& b) {
  a.resize(n);
  b.resize(n);
  uint32_t counts[3][2048] = {};
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = KeyOf(x[i]);
    a[i] = uint64_t{key} << 32 | static_cast<uint64_t>(i);
    ++counts[0][key & 2047];
    ++counts[1][key >> 11 & 2047];
    ++counts[2][key >> 22];
  }
  for (int pass = 0; pass < 3; ++pass) {
    const int shift = 32 + pass * 11;
    uint32_t at = 0;
    for (uint32_t& count : counts[pass]) {
      const uint32_t c = count;
      count = at;
      at += c;
    }
    for (uint64_t e : a) b[counts[pass][e >> shift & 2047]++] = e;
    a.swap(b);
  }
}

// Few of many: a short sorted list of the best so far.
template <typename T>
void FewOfRow(const T* x, int64_t n, int64_t k, int64_t* places) {
  using W = ComputeType<T>;
  std::vector<W> best(k);
  int64_t have = 0;
  auto insert = [&](W v, int64_t i) {
    int64_t at = have < k ? have++ : k - 1;
    for (; at > 0 && Above(v, best[at - 1]); --at) {
      best[at] = best[at - 1];
      places[at] = places[at - 1];
    }
    best[at] = v;
    places[at] = i;
  };
  int64_t i = 0;
  for (; i < k; ++i) insert(static_cast<W>(x[i]), i);
  constexpr int kBlock = 64;
  for (; i + kBlock <= n; i += kBlock) {
    const W least = best[k - 1];
    int any = 0;
    for (int j = 0; j < kBlock; ++j) {
      const W v = static_cast<W>(x[i + j]);
      any |= (v > least) | (v != v);
    }
    if (!any) continue;
    for (int j = 0; j < kBlock; ++j) {
      const W v = static_cast<W>(x[i + j]);
      if (Above(v, best[k - 1])) insert(v, i + j);
    }
  }
  for (; i < n; ++i) {
    const W v = static_cast<W>(x[i]);
    if (Above(v, best[k - 1])) insert(v, i);
  }
}

template <typename T>
void ManyOfRow(const T* x, int64_t n, int64_t k, int64_t* places) {
  using W = ComputeType<T>;
  if constexpr (kHasKey<T>) {
    if (n >= 512 && n < (int64_t{1} << 32) && k * 4 >= n) {
      static thread_local std::vector<uint64_t> a, b;
      RadixSort(x, n, a, b);
      for (int64_t i = 0; i < k; ++i) places[i] = a[i] & 0xffffffff;
      return;
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  auto before = [x](int64_t a, int64_t b) {
    const W u = static_cast<W>(x[a]), v = static_cast<W>(x[b]);
    if (Above(u, v)) return true;
    return Above(v, u) ? false : a < b;
  };
  if (k < n) {
    std::nth_element(order.begin(), order.begin() + k, order.end(), before);
  }
  std::sort(order.begin(), order.begin() + k, before);
  std::copy_n(order.begin(), k, places);
}

// The number wanted: an attribute, or the second input.
StatusOr<int64_t> Count(const ResolvedOp& op, const Tensor* k, bool* known) {
  *known = true;
  if (op.num_inputs() == 1) return op.int_attr("k");
  if (k == nullptr) {
    *known = false;
    return 0;
  }
  const int64_t n =
      k->dtype() == DType::kInt16 ? k->scalar<int16_t>() : k->IntAt(0);
  if (n < 0) return InvalidArgument("Need k >= 0, got ", n);
  return n;
}

Status TopKShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (c.num_inputs() == 2 && c.input(1).known_rank() &&
      c.input(1).rank() != 0) {
    return InvalidArgument("k must be scalar, got shape ", c.input(1));
  }
  if (x.known_rank() && x.rank() < 1) {
    return InvalidArgument("input must be >= 1-D, got shape ", x);
  }
  bool known;
  HR_ASSIGN_OR_RETURN(int64_t k, Count(c.op(), c.value(1), &known));
  if (!x.known_rank()) return OkStatus();
  const int64_t n = x[x.rank() - 1];
  if (known && n >= 0 && n < k) {
    return InvalidArgument("input must have at least k columns. Had ", n,
                           ", needed ", k);
  }
  Shape out = x;
  out.set_dim(x.rank() - 1, known ? k : Shape::kUnknown);
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return OkStatus();
}

template <typename T, typename I>
void RunRows(KernelContext& c, int64_t n, int64_t k) {
  const T* x = c.in<T>(0);
  T* values = c.out<T>(0);
  I* indices = c.out<I>(1);
  const int64_t rows = c.input(0).num_elements() / n;
  ParallelFor(rows, n * (k > 32 ? 40.0 : 0.5), [&](int64_t begin, int64_t end) {
    std::vector<int64_t> places(k);
    for (int64_t r = begin; r < end; ++r) {
      if (k <= 64 && k * 8 <= n) {
        FewOfRow(x + r * n, n, k, places.data());
      } else {
        ManyOfRow(x + r * n, n, k, places.data());
      }
      for (int64_t i = 0; i < k; ++i) {
        values[r * k + i] = x[r * n + places[i]];
        indices[r * k + i] = static_cast<I>(places[i]);
      }
    }
  });
}

Status RunTopK(KernelContext& c) {
  const int64_t n = c.input(0).dim(c.input(0).rank() - 1);
  const int64_t k = c.output(0).dim(c.output(0).rank() - 1);
  if (c.output(0).num_elements() == 0) return OkStatus();
  const DType index = c.output(1).dtype();
  if (index == DType::kInt16 && n > std::numeric_limits<int16_t>::max()) {
    return InvalidArgument("rows of ", n, " elements have indices too large ",
                           "for int16");
  }
  DispatchDType(c.input(0).dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    DispatchDType(index, TypeList<int32_t, int64_t, int16_t>{}, [&](auto i) {
      RunRows<T, typename decltype(i)::type>(c, n, k);
    });
  });
  return OkStatus();
}

// Each value's gradient goes back to its place: rows are laid side by side.
Status TopKGradient(GradientContext& g) {
  Value d = g.grad(0);
  if (!d) return g.status();
  const Value& x = g.input(0);
  auto as_int32 = [&](const Value& v) {
    return v.dtype() == DType::kInt32
               ? v
               : g("Cast", {v}, {{"DstT", DType::kInt32}});
  };
  Value shape = g.ShapeOf(x);
  Value n = g("GatherV2",
              {shape, g("Sub", {g("Size", {shape}), g.Int32(1)}), g.Int32(0)});
  Value k =
      g("GatherV2", {g.ShapeOf(g.output(0)),
                     g("Sub", {g("Size", {shape}), g.Int32(1)}), g.Int32(0)});
  Value flat = g("Reshape", {as_int32(g.output(1)),
                             g("Pack", {g.Int32(-1), k}, {{"N", 2}})});
  Value rows = g("GatherV2", {g("Shape", {flat}), g.Int32(0), g.Int32(0)});
  Value starts = g("Mul", {g("Range", {g.Int32(0), rows, g.Int32(1)}), n});
  Value at = g("AddV2", {flat, g("ExpandDims", {starts, g.Int32(1)})});
  Value index = g("Reshape", {at, g.Int32s({-1, 1})});
  Value size = g("Reshape", {g("Size", {x}), g.Int32s({1})});
  Value sums = g("ScatterNd", {index, g("Reshape", {d, g.Int32s({-1})}), size});
  g.set(0, g("Reshape", {sums, shape}));
  return g.status();
}

HR_OP(TopK)
    .Input("input: T")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("k: int >= 0")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Doc("The k largest elements along the last dimension.")
    .Deprecated(7, "Use TopKV2 instead")
    .Shape(TopKShape)
    .Gradient(TopKGradient)
    .Cpu(Compute<RunTopK>);

HR_OP(TopKV2)
    .Input("input: T")
    .Input("k: Tk")
    .Output("values: T")
    .Output("indices: index_type")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Attr("Tk: {int16, int32, int64} = int32")
    .Attr("index_type: {int16, int32, int64} = int32")
    .Doc(
        "The k largest elements along the last dimension, in falling order "
        "(whether `sorted` or not).")
    .Shape(TopKShape)
    .Gradient(TopKGradient)
    .Cpu(Compute<RunTopK>);

// Exact, as upstream's is on processors, where it knows no other form either.
StatusOr<std::unique_ptr<Kernel>> BindApproximate(const ResolvedOp& op) {
  if (!op.bool_attr("is_max_k") || op.int_attr("reduction_dimension") != -1 ||
      !op.bool_attr("aggregate_to_topk")) {
    return Unimplemented(
        "ApproxTopK but for is_max_k, reduction_dimension -1 and "
        "aggregate_to_topk");
  }
  return MakeKernel(RunTopK);
}

HR_OP(ApproxTopK)
    .Input("input: T")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("k: int >= 0")
    .Attr("reduction_dimension: int = -1")
    .Attr("recall_target: float = 0.95")
    .Attr("is_max_k: bool = true")
    .Attr("reduction_input_size_override: int = -1")
    .Attr("aggregate_to_topk: bool = true")
    .Attr("T: {half, bfloat16, float}")
    .Doc("The k largest elements along the last dimension, in falling order.")
    .Shape(TopKShape)
    .Gradient(TopKGradient)
    .Cpu(BindApproximate);

// --- NthElement and InTopK.

Status NthShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (x.known_rank() && x.rank() < 1) {
    return InvalidArgument("Input must be at least rank 1 but is rank ",
                           x.rank());
  }
  bool known = false;
  int64_t n = 0;
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  HR_RETURN_IF_ERROR(c.IntValue(1, &known, &n));
  if (known && n < 0)
    return InvalidArgument("n must be non-negative but is ", n);
  if (!x.known_rank()) return OkStatus();
  const int64_t last = x[x.rank() - 1];
  if (known && last >= 0 && last <= n) {
    return InvalidArgument("Input must have last dimension > n = ", n);
  }
  c.set_output(0, x.Sub(0, -1));
  return OkStatus();
}

Status RunNth(KernelContext& c) {
  const Tensor& x = c.input(0);
  const int64_t size = x.dim(x.rank() - 1);
  int64_t n = c.input(1).IntAt(0);
  if (c.op().bool_attr("reverse")) n = size - 1 - n;
  DispatchDType(x.dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = ComputeType<T>;
    const T* from = c.in<T>(0);
    T* out = c.out<T>(0);
    ParallelFor(c.output(0).num_elements(), size * 10.0,
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    std::vector<T> row(from + r * size, from + (r + 1) * size);
                    std::nth_element(
                        row.begin(), row.begin() + n, row.end(), [](T a, T b) {
                          return Above(static_cast<W>(b), static_cast<W>(a));
                        });
                    out[r] = row[n];
                  }
                });
  });
  return OkStatus();
}

// Equal elements share the gradient.
Status NthGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  Value y = g("ExpandDims", {g.output(0), g.Int32(-1)});
  Value column = g("ExpandDims", {d, g.Int32(-1)});
  Value chosen =
      g("Cast", {g("Equal", {y, g.input(0)})}, {{"DstT", g.input(0).dtype()}});
  Value count = g("Sum", {chosen, g.Int32s({-1})}, {{"keep_dims", true}});
  g.set(0, g("Mul", {g("RealDiv", {chosen, count}), column}));
  return g.status();
}

HR_OP(NthElement)
    .Input("input: T")
    .Input("n: int32")
    .Output("values: T")
    .Attr("reverse: bool = false")
    .Attr("T: realnumbertype")
    .Doc("The n-th smallest (or largest) element along the last dimension.")
    .Shape(NthShape)
    .Gradient(NthGradient)
    .Cpu(Compute<RunNth>);

Status InTopKShape(ShapeContext& c) {
  const Shape &p = c.input(0), &t = c.input(1);
  if (p.known_rank() && p.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional");
  }
  if (t.known_rank() && t.rank() != 1) {
    return InvalidArgument("targets must be 1-dimensional");
  }
  if (p.known_rank() && t.known_rank() && p[0] >= 0 && t[0] >= 0 &&
      p[0] != t[0]) {
    return InvalidArgument("First dimension of predictions ", p[0],
                           " must match length of targets ", t[0]);
  }
  const int64_t rows = t.known_rank() ? t[0] : p.known_rank() ? p[0] : -1;
  c.set_output(0, Shape{rows});
  return OkStatus();
}

// True where fewer than k predictions are above the target's; never for a
// target that is no class, or where a prediction is not finite.
Status RunInTopK(KernelContext& c) {
  const Tensor& targets = c.input(1);
  if (c.num_inputs() == 3 && c.input(2).rank() != 0) {
    return InvalidArgument("k must be 0-D, got shape ", c.input(2).shape());
  }
  const int64_t k =
      c.num_inputs() == 3 ? c.input(2).IntAt(0) : c.op().int_attr("k");
  const int64_t rows = c.input(0).dim(0), n = c.input(0).dim(1);
  for (int64_t r = 0; r < rows; ++r) {
    const float* p = c.in<float>(0) + r * n;
    const int64_t target = targets.IntAt(r);
    bool bad = target < 0 || target >= n || !(p[target] - p[target] == 0);
    int64_t above = 0;
    for (int64_t i = 0; i < n && !bad; ++i) {
      bad = !(p[i] - p[i] == 0);
      above += p[i] > p[target];
      if (above > k) break;
    }
    c.out<bool>(0)[r] = !bad && above < k;
  }
  return OkStatus();
}

HR_OP(InTopK)
    .Input("predictions: float")
    .Input("targets: T")
    .Output("precision: bool")
    .Attr("k: int")
    .Attr("T: {int32, int64} = int32")
    .Doc("Whether each target is among the k largest predictions of its row.")
    .Shape(InTopKShape)
    .Cpu(Compute<RunInTopK>);

HR_OP(InTopKV2)
    .Input("predictions: float")
    .Input("targets: T")
    .Input("k: T")
    .Output("precision: bool")
    .Attr("T: {int32, int64} = int32")
    .Doc("InTopK with k as an input.")
    .Shape(InTopKShape)
    .Cpu(Compute<RunInTopK>);

}  // namespace
}  // namespace headrace
