// What a collective gives, of what its members bring.
#include <cstring>
#include <type_traits>

#include "base/thread_pool.h"
#include "ops/collective/collective.h"
#include "ops/math/loops/wrapping.h"

namespace headrace {
namespace {

// Upstream rounds after each step, also of small types, whose numbers are
// merged as floats.
template <typename T, typename F>
void MergeAll(F merge, const T* a, const T* b, T* to, int64_t n) {
  using W = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<T>(merge(static_cast<W>(a[i]), static_cast<W>(b[i])));
  }
}

template <typename T>
void MergeBy(const std::string& op, const T* a, const T* b, T* to, int64_t n) {
  using W = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  if (op == "Add") {
    MergeAll([](W x, W y) { return Plus(x, y); }, a, b, to, n);
  } else if (op == "Mul") {
    MergeAll([](W x, W y) { return Times(x, y); }, a, b, to, n);
  } else if (op == "Min") {
    // A NaN stays, whichever side it is on.
    MergeAll([](W x, W y) { return y < x || y != y ? y : x; }, a, b, to, n);
  } else {
    MergeAll([](W x, W y) { return y > x || y != y ? y : x; }, a, b, to, n);
  }
}

// Some nanoseconds for three numbers that come from and go to memory.
constexpr double kNanosecondsAnElement = 1;

StatusOr<Tensor> Merged(const CollectiveCall& call,
                        absl::Span<const Tensor> inputs) {
  // A copy also of a lone member's, whose memory may be its own for the call.
  HR_ASSIGN_OR_RETURN(Tensor all, inputs[0].Clone());
  const auto size = static_cast<int64_t>(DTypeSize(call.dtype));
  char* const to = static_cast<char*>(all.raw());
  ParallelFor(all.num_elements(), kNanosecondsAnElement,
              [&](int64_t begin, int64_t end) {
                char* const at = to + begin * size;
                for (const Tensor& t : inputs.subspan(1)) {
                  MergeElements(
                      call, at,
                      static_cast<const char*>(t.raw()) + begin * size, at,
                      end - begin);
                }
                FinishElements(call, static_cast<int64_t>(inputs.size()), at,
                               end - begin);
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

std::string KindText(const CollectiveCall& c) {
  return absl::StrCat("type ", static_cast<int>(c.kind), " and data_type ",
                      static_cast<int>(c.dtype));
}

}  // namespace

void MergeElements(const CollectiveCall& call, const void* a, const void* b,
                   void* to, int64_t n) {
  DispatchDType(call.dtype, RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MergeBy(call.merge_op, static_cast<const T*>(a), static_cast<const T*>(b),
            static_cast<T*>(to), n);
  });
}

void FinishElements(const CollectiveCall& call, int64_t size, void* at,
                    int64_t n) {
  if (call.final_op != "Div") return;
  DispatchDType(call.dtype, RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    T* const v = static_cast<T*>(at);
    const W by = static_cast<W>(size);
    for (int64_t i = 0; i < n; ++i) {
      v[i] = static_cast<T>(static_cast<W>(v[i]) / by);
    }
  });
}

Status CheckAgreement(const CollectiveCall& first, const CollectiveCall& call,
                      const std::string& device) {
  if (first.kind != call.kind || first.dtype != call.dtype) {
    return Internal("Collective instance ", call.instance_key, " expected ",
                    KindText(first), " but got ", KindText(call));
  }
  if (first.shape != call.shape) {
    return InvalidArgument(
        "Shape mismatch in the collective instance ", call.instance_key,
        ". Op at device ", device, " expected shape ", call.shape,
        " but another member in the group expected shape ", first.shape,
        ". This is likely due to different input shapes at different members "
        "of the collective op.");
  }
  if (first.merge_op != call.merge_op || first.final_op != call.final_op) {
    return InvalidArgument("Collective instance ", call.instance_key,
                           " expected merge_op ", first.merge_op,
                           " and final_op ", first.final_op, " but got ",
                           call.merge_op, " and ", call.final_op);
  }
  return OkStatus();
}

Status CheckSources(int64_t instance_key, absl::Span<const int> sources,
                    int64_t size) {
  if (sources.empty()) {
    return Internal("Instance ", instance_key,
                    " found no source for broadcast.  This could mean that "
                    "there were group_size=",
                    size, " BcastRecvs but no BcastSend.");
  }
  if (sources.size() == 1) return OkStatus();
  return Internal("Instance ", instance_key, " already has source ", sources[0],
                  ", received second claim from ", sources[1]);
}

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
  return CheckSources(call.instance_key, {}, size);
}

}  // namespace headrace
