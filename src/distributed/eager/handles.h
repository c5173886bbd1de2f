// The tensors that stay on a task for its clients, by the operation that made
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "op/tensor_store.h"

namespace headrace::distributed {

// What the tensors of all clients of a task take together. Thread-safe.
class KeptBytes {
 public:
  // Three quarters of the machine's memory: a task that takes more would be
  // ended, and what it has for everybody with it.
  static int64_t Standard();
  explicit KeptBytes(int64_t most = Standard()) : most_(most) {}

  // ResourceExhausted, and nothing is taken, where that would be too many.
  Status Take(int64_t bytes);
  void Give(int64_t bytes) { taken_ -= bytes; }
  int64_t taken() const { return taken_; }

 private:
  const int64_t most_;
  std::atomic<int64_t> taken_{0};
};

// Thread-safe.
class Handles : public TensorStore {
 public:
  explicit Handles(
      std::shared_ptr<KeptBytes> bytes = std::make_shared<KeptBytes>())
      : bytes_(std::move(bytes)) {}
  ~Handles() override { Clear(); }
  // More at the same time are ResourceExhausted.
  static constexpr size_t kMost = size_t{1} << 20;

  // Output `numbers[i]` of `op` is tensors[i] from now on, whatever it was.
  // ResourceExhausted, and nothing changes, for more than may be kept.
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

  const std::shared_ptr<KeptBytes> bytes_;
  mutable Mutex mutex_;
  std::map<Key, Tensor> tensors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
