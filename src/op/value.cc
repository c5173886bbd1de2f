#include "op/value.h"

#include <algorithm>

namespace headrace {

const Value::Rep Value::kNull{
    {1}, 0, Tensor(DType::kInvalid, Shape::UnknownRank())};

[[gnu::hot]] uint64_t Value::NewIds(int count) {
  // Blocks of ids a thread, so that the counter's line is rarely contended.
  constexpr uint64_t kBlock = 1024;
  static std::atomic<uint64_t> next_free{kBlock};
  static constinit thread_local uint64_t next
      [[gnu::tls_model("initial-exec")]] = 0,
      end [[gnu::tls_model("initial-exec")]] = 0;
  if (next + count > end) {
    uint64_t take = std::max<uint64_t>(kBlock, count);
    next = next_free.fetch_add(take, std::memory_order_relaxed);
    end = next + take;
  }
  uint64_t first = next;
  next += count;
  return first;
}

const HandleData* Value::handle_data() const {
  return shared_handle_data().get();
}

std::shared_ptr<const HandleData> Value::shared_handle_data() const {
  if (!rep_) return nullptr;
  if (rep_->handle) return rep_->handle;
  if (!is_symbolic() && dtype() == DType::kResource && tensor().has_buffer() &&
      tensor().num_elements() == 1) {
    return tensor().scalar<ResourceHandle>().data;
  }
  return nullptr;
}

}  // namespace headrace
