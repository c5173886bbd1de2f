#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

Status WhereRule(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() == 0) {
    return InvalidArgument("WhereOp : Unhandled input dimensions: 0");
  }
  c.set_output(0, Shape{Shape::kUnknown, in.known_rank() ? int64_t{in.rank()}
                                                         : Shape::kUnknown});
  return OkStatus();
}

template <typename T>
bool IsTrue(const T& x) {
  if constexpr (std::is_same_v<T, qint8> || std::is_same_v<T, quint8> ||
                std::is_same_v<T, qint16> || std::is_same_v<T, quint16> ||
                std::is_same_v<T, qint32>) {
    // Quantized types have no arithmetic, not even a comparison with a number.
    return x.value != 0;
  } else {
    return x != T(0);
  }
}

// Writes the indices of the `count` true elements from `begin` on to `out`.
template <typename T>
void WriteIndices(const T* x, const Shape& shape, int64_t begin, int64_t count,
                  int64_t* out) {
  const int rank = shape.rank();
  if (rank == 1) {  // without a branch that is hard to foresee
    const int64_t* end = out + count;
    for (int64_t i = begin; out < end; ++i) {
      // Written always and kept only when the element is true; the place behind
      // the last one is never reached, as the loop ends at `count`.
      *out = i;
      out += IsTrue(x[i]);
    }
    return;
  }
  absl::InlinedVector<int64_t, 8> at(rank);
  int64_t rest = begin;
  for (int d = rank - 1; d >= 0; --d) {
    at[d] = rest % shape[d];
    rest /= shape[d];
  }
  for (int64_t i = begin; count > 0; ++i) {
    if (IsTrue(x[i])) {
      out = std::copy_n(at.data(), rank, out);
      --count;
    }
    // Like an odometer: the last coordinate runs over first. No division for
    // each element.
    for (int d = rank - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
}

template <typename T>
Status WhereOf(KernelContext& c) {
  const Tensor& in = c.input(0);
  const T* x = in.data<T>();
  const int64_t n = in.num_elements(), block = FixedBlockSize(n);
  std::vector<int64_t> first(FixedBlocks(n) + 1, 0);
  // Two passes over the same fixed blocks: the first counts, so that each block
  // of the second knows where its indices begin.
  ParallelBlocks(n, block, 0.4, [&](int64_t k, int64_t b, int64_t e) {
    int64_t count = 0;
    for (int64_t i = b; i < e; ++i) count += IsTrue(x[i]);
    first[k + 1] = count;
  });
  for (size_t k = 1; k < first.size(); ++k) first[k] += first[k - 1];
  const int rank = in.rank();
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{first.back(), rank}));
  int64_t* out = c.out<int64_t>(0);
  ParallelBlocks(n, block, 1.0, [&](int64_t k, int64_t b, int64_t e) {
    WriteIndices(x, in.shape(), b, first[k + 1] - first[k],
                 out + first[k] * rank);
  });
  return OkStatus();
}

ComputeFn PickWhere(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  auto pick = [&](auto tag) { fn = WhereOf<typename decltype(tag)::type>; };
  DispatchDType(op.type_attr("T"), NumberTypes{}, pick);
  DispatchDType(op.type_attr("T"),
                TypeList<bool, qint8, quint8, qint16, quint16, qint32>{}, pick);
  return fn;
}

HR_OP(Where)
    .Input("input: T")
    .Output("index: int64")
    .Attr("T: {numbertype, bool} = DT_BOOL")
    .RawName("input", "condition")
    .Doc("The indices of the elements that are true or not zero, a row each.")
    .Shape(WhereRule)
    .Cpu(ComputeFor<PickWhere>);

}  // namespace
}  // namespace headrace
