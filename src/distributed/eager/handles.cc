#include "distributed/eager/handles.h"

#include <unistd.h>

#include <numeric>
#include <utility>

namespace headrace::distributed {

namespace {

int64_t BytesOf(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<int64_t>(t.bytes());
  return bytes;
}

}  // namespace

int64_t KeptBytes::Standard() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? pages * size / 4 * 3 : INT64_MAX;
}

Status KeptBytes::Take(int64_t bytes) {
  int64_t taken = taken_;
  do {
    if (bytes > most_ - taken) {
      return ResourceExhausted("clients keep ", taken,
                               " bytes in tensors on "
                               "the task; ",
                               most_, " may be, not ", bytes, " more");
    }
  } while (!taken_.compare_exchange_weak(taken, taken + bytes));
  return OkStatus();
}

Status Handles::NotThere(int64_t op, int output) {
  return InvalidArgument(
      "Unable to find the relevant tensor remote_handle: Op ID: ", op,
      ", Output num: ", output);
}

Status Handles::Put(int64_t op, const std::vector<int>& numbers,
                    std::vector<Tensor> tensors) {
  if (numbers.size() != tensors.size()) {
    return InvalidArgument("Operation ", op, " has ", tensors.size(),
                           " outputs, and ", numbers.size(), " numbers");
  }
  std::vector<Tensor> last;  // end behind the lock
  MutexLock lock(mutex_);
  if (tensors_.size() + tensors.size() > kMost) {
    return ResourceExhausted("a context holds ", tensors_.size(),
                             " tensors, as many as may be");
  }
  HR_RETURN_IF_ERROR(bytes_->Take(BytesOf(tensors)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Tensor& there = tensors_[Key{op, numbers[i]}];
    last.push_back(std::exchange(there, std::move(tensors[i])));
  }
  bytes_->Give(BytesOf(last));
  return OkStatus();
}

Status Handles::Put(int64_t op, std::vector<Tensor> tensors) {
  std::vector<int> numbers(tensors.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return Put(op, numbers, std::move(tensors));
}

StatusOr<Tensor> Handles::Get(int64_t op, int output) const {
  MutexLock lock(mutex_);
  const auto it = tensors_.find({op, output});
  if (it != tensors_.end()) return it->second;
  const Status s = NotThere(op, output);
  return Status(
      s.code(),
      absl::StrCat(
          s.message(),
          ". One possible cause is that the tensor was accessed after "
          "deallocation in a distributed worker setup.Try setting "
          "`os.environ['TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE']='False'` in "
          "your client to disable async streaming behavior to see if it fixes "
          "the problem."));
}

Status Handles::Drop(int64_t op, int output) {
  Tensor last;  // ends behind the lock
  MutexLock lock(mutex_);
  const auto it = tensors_.find({op, output});
  if (it == tensors_.end()) return NotThere(op, output);
  last = std::move(it->second);
  tensors_.erase(it);
  bytes_->Give(static_cast<int64_t>(last.bytes()));
  return OkStatus();
}

void Handles::Clear() {
  std::map<Key, Tensor> last;
  MutexLock lock(mutex_);
  last.swap(tensors_);
  for (const auto& [key, t] : last) {
    bytes_->Give(static_cast<int64_t>(t.bytes()));
  }
}

size_t Handles::size() const {
  MutexLock lock(mutex_);
  return tensors_.size();
}

}  // namespace headrace::distributed
