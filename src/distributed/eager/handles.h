// The tensors that stay on a task for its clients, by the operation that made
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "op/tensor_store.h"

namespace headrace::distributed {

// Thread-safe.
class Handles : public TensorStore {
 public:
  // More at the same time are ResourceExhausted.
  static constexpr size_t kMost = size_t{1} << 20;

  // Output `numbers[i]` of `op` is tensors[i] from now on, whatever it was.
  Status Put(int64_t op, const std::vector<int>& numbers,
             std::vector<Tensor> tensors);
  // All outputs of `op`.
  Status Put(int64_t op, std::vector<Tensor> tensors);
  // InvalidArgument, with upstream's text, for one that is not there.
  StatusOr<Tensor> Get(int64_t op, int output) const override;
  // It is not there any more; the same error.
  Status Drop(int64_t op, int output);
  void Clear();
  size_t size() const;
  std::string DebugString() const override { return "tensors of a client"; }

 private:
  using Key = std::pair<int64_t, int>;
  static Status NotThere(int64_t op, int output);

  mutable Mutex mutex_;
  std::map<Key, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
