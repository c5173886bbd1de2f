#include "ops/random/fill.h"

#include "base/random/random_fill.h"
#include "base/status.h"

namespace headrace {
namespace {

using BitTypes = TypeList<int32_t, int64_t, uint32_t, uint64_t>;

template <typename T>
void FillFloats(RandomKind kind, const Philox& generator, Tensor& out) {
  T* data = out.data<T>();
  const int64_t n = out.num_elements();
  if (kind == RandomKind::kUniform) FillUniform(generator, data, n);
  if (kind == RandomKind::kNormal) FillNormal(generator, data, n);
  if (kind == RandomKind::kTruncatedNormal) {
    FillTruncatedNormal(generator, data, n);
  }
}

}  // namespace

Status FillRandom(RandomKind kind, const Philox& generator, Tensor& out) {
  bool done;
  if (kind == RandomKind::kBits) {
    done = DispatchDType(out.dtype(), BitTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      FillBits<T>(generator, out.data<T>(), out.num_elements());
    });
  } else {
    done = DispatchDType(out.dtype(), FloatTypes{}, [&](auto tag) {
      FillFloats<typename decltype(tag)::type>(kind, generator, out);
    });
  }
  if (done) return OkStatus();
  return InvalidArgument("no random numbers of type ", DTypeName(out.dtype()));
}

Status FillRandomInt(const Philox& generator, const Tensor& low,
                     const Tensor& high, Tensor& out) {
  Status status =
      InvalidArgument("no random integers of type ", DTypeName(out.dtype()));
  DispatchDType(out.dtype(), BitTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T from = low.scalar<T>(), to = high.scalar<T>();
    // An empty tensor has no number that could lie in an empty range.
    if (out.num_elements() == 0) {
      status = OkStatus();
    } else if (from >= to) {
      status = InvalidArgument("Need minval < maxval, got ", from, " >= ", to);
    } else {
      FillUniformInt<T>(generator, from, to, out.data<T>(), out.num_elements());
      status = OkStatus();
    }
  });
  return status;
}

}  // namespace headrace
