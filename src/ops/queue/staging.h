// What staging areas, ordered or by key, have in common.
#pragma once

#include <memory>
#include <string>

#include "op/op.h"
#include "op/resource.h"
#include "ops/queue/tuple_queue.h"

namespace headrace {

// How much an area holds at most; 0 is no limit.
struct StagingLimits {
  int64_t capacity = 0;  // tuples
  int64_t memory = 0;    // bytes
  // Whether `more` bytes must wait where there are `held` tuples of `bytes`.
  bool IsFull(int64_t held, int64_t bytes, int64_t more) const {
    return (capacity > 0 && held >= capacity) ||
           (memory > 0 && bytes + more > memory);
  }
  // ResourceExhausted where no amount of waiting would help.
  Status CheckFits(int64_t bytes) const {
    if (memory <= 0 || bytes <= memory) return OkStatus();
    return ResourceExhausted(
        "Attempted to insert tensors with combined size of '", bytes,
        "' bytes into Staging Area with a memory ", "limit of '", memory, "'.");
  }
};

inline int64_t BytesOf(absl::Span<const Tensor> tuple) {
  int64_t bytes = 0;
  for (const Tensor& t : tuple) bytes += static_cast<int64_t>(t.bytes());
  return bytes;
}

// `t`, or a copy where its memory is only borrowed for the call.
inline StatusOr<Tensor> KeptAlone(const Tensor& t) {
  if (t.counted()) return t;
  return t.Clone();
}

inline void AddStagingAttrs(OpBuilder& b, const char* dtypes) {
  b.Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr(dtypes)
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''");
}

// The area of the op's container and shared_name, made where there is none.
template <typename A>
StatusOr<std::shared_ptr<A>> SharedArea(const KernelContext& c) {
  const ResolvedOp& op = c.op();
  std::string container = op.string_attr("container");
  if (container.empty()) container = "localhost";
  const StagingLimits limits{op.int_attr("capacity"),
                             op.int_attr("memory_limit")};
  return c.services().resources->template LookUpOrCreate<A>(
      container, op.string_attr("shared_name"),
      [&]() -> StatusOr<std::shared_ptr<A>> {
        return std::make_shared<A>(limits);
      });
}

// Outputs from `first` on; InvalidArgument where the tuple does not fit them.
inline Status SetTuple(KernelContext& c, int first, Tuple tuple) {
  if (static_cast<int>(tuple.size()) != c.num_outputs() - first) {
    return InvalidArgument("Mismatch stage/unstage: ", tuple.size(), " vs. ",
                           c.num_outputs() - first);
  }
  for (size_t i = 0; i < tuple.size(); ++i) {
    const int o = first + static_cast<int>(i);
    if (tuple[i].dtype() != c.op().output_types()[o]) {
      return InvalidArgument("Mismatch stage/unstage: component ", i, " is of ",
                             DTypeName(tuple[i].dtype()), ", not of ",
                             DTypeName(c.op().output_types()[o]));
    }
    c.set_output(o, std::move(tuple[i]));
  }
  return OkStatus();
}

}  // namespace headrace
