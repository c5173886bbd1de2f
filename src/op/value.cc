#include "op/value.h"

namespace headrace {

uint64_t Value::NewId() {
  // Blocks of ids a thread, so that the counter's line is rarely contended.
  constexpr uint64_t kBlock = 1024;
  static std::atomic<uint64_t> next_block{1};
  thread_local uint64_t next = 0, end = 0;
  if (next == end) {
    next = next_block.fetch_add(1, std::memory_order_relaxed) * kBlock;
    end = next + kBlock;
  }
  return next++;
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
