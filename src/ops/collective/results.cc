// What a collective gives, of what its members bring.
#include <cstring>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/collective/collective.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

// Takes `from` into `to`, element by element.
template <typename T, typename F>
void Take(const Tensor& from, Tensor& to, F merge) {
  const T* const b = from.data<T>();
  T* const a = to.data<T>();
  // Some nanoseconds for three numbers that come from and go to memory.
  constexpr double kNanoseconds = 1;
  ParallelFor(to.num_elements(), kNanoseconds, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a[i] = merge(a[i], b[i]);
  });
}

// Upstream rounds after each step, also of small types, whose numbers are
// merged as floats.
template <typename T>
void MergeInto(const std::string& op, const Tensor& from, Tensor& to) {
  using W = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  const auto as_wide = [](auto f) {
    return [f](T a, T b) {
      return static_cast<T>(f(static_cast<W>(a), static_cast<W>(b)));
    };
  };
  if (op == "Add") {
    Take<T>(from, to, as_wide([](W a, W b) { return Plus(a, b); }));
  } else if (op == "Mul") {
    Take<T>(from, to, as_wide([](W a, W b) { return Times(a, b); }));
  } else if (op == "Min") {
    // A NaN stays, whichever side it is on.
    Take<T>(from, to,
            as_wide([](W a, W b) { return b < a || b != b ? b : a; }));
  } else {
    Take<T>(from, to,
            as_wide([](W a, W b) { return b > a || b != b ? b : a; }));
  }
}

StatusOr<Tensor> Merged(const CollectiveCall& call,
                        absl::Span<const Tensor> inputs) {
  // A copy also of a lone member's, whose memory may be its own for the call.
  HR_ASSIGN_OR_RETURN(Tensor all, inputs[0].Clone());
  DispatchDType(call.dtype, RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    for (const Tensor& t : inputs.subspan(1)) {
      MergeInto<T>(call.merge_op, t, all);
    }
    if (call.final_op != "Div") return;
    const W size = static_cast<W>(inputs.size());
    Take<T>(all, all, [size](T a, T) {
      return static_cast<T>(static_cast<W>(a) / size);
    });
  });
  return all;
}

// Rows [first, first + rows) of each of `parts`, one behind the other; a row is
// `row_bytes`.
StatusOr<Tensor> JoinedRows(absl::Span<const Tensor> parts, int64_t first,
                            int64_t rows) {
  Shape shape = parts[0].shape();
  const int64_t row_bytes =
      parts[0].dim(0) == 0
          ? 0
          : static_cast<int64_t>(parts[0].bytes()) / parts[0].dim(0);
  shape.set_dim(0, rows * static_cast<int64_t>(parts.size()));
  HR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());
  HR_ASSIGN_OR_RETURN(Tensor all, Tensor::Allocate(parts[0].dtype(), shape));
  char* to = static_cast<char*>(all.raw());
  for (const Tensor& part : parts) {
    if (rows * row_bytes == 0) break;
    std::memcpy(to, static_cast<const char*>(part.raw()) + first * row_bytes,
                rows * row_bytes);
    to += rows * row_bytes;
  }
  return all;
}

// The rows of one tensor, so many for each member.
StatusOr<std::vector<Tensor>> Scattered(const Tensor& all, int64_t size) {
  const int64_t rows = all.dim(0) / size;
  std::vector<Tensor> results;
  for (int64_t i = 0; i < size; ++i) {
    HR_ASSIGN_OR_RETURN(results.emplace_back(),
                        JoinedRows({all}, i * rows, rows));
  }
  return results;
}

}  // namespace

Status CheckAllToAll(const CollectiveCall& call) {
  const int64_t rows = call.shape.rank() > 0 ? call.shape[0] : 0;
  if (rows == call.member.group_size) return OkStatus();
  return InvalidArgument("input to all-to-all first dimension size (", rows,
                         ") must be the same as the group size (",
                         call.member.group_size, ")");
}

StatusOr<std::vector<Tensor>> CollectiveResults(
    const CollectiveCall& call, absl::Span<const Tensor> inputs) {
  const auto size = static_cast<int64_t>(inputs.size());
  switch (call.kind) {
    case CollectiveKind::kReduce: {
      HR_ASSIGN_OR_RETURN(Tensor all, Merged(call, inputs));
      return std::vector<Tensor>(size, all);
    }
    case CollectiveKind::kReduceScatter: {
      HR_ASSIGN_OR_RETURN(const Tensor all, Merged(call, inputs));
      return Scattered(all, size);
    }
    case CollectiveKind::kGather: {
      HR_ASSIGN_OR_RETURN(Tensor all, JoinedRows(inputs, 0, inputs[0].dim(0)));
      return std::vector<Tensor>(size, all);
    }
    case CollectiveKind::kAllToAll: {
      std::vector<Tensor> results;
      for (int64_t i = 0; i < size; ++i) {
        HR_ASSIGN_OR_RETURN(results.emplace_back(), JoinedRows(inputs, i, 1));
      }
      return results;
    }
    case CollectiveKind::kBroadcast: {
      for (const Tensor& t : inputs) {
        if (!t.has_buffer()) continue;
        // The one that sends may be given memory that is its own for the call.
        HR_ASSIGN_OR_RETURN(Tensor sent, t.Clone());
        return std::vector<Tensor>(size, sent);
      }
      break;
    }
  }
  return Internal("Instance ", call.instance_key,
                  " found no source for broadcast.  This could mean that there "
                  "were group_size=",
                  size, " BcastRecvs but no BcastSend.");
}

}  // namespace headrace
