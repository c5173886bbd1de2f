// The mutable arrays and stacks of TensorFlow 1's loops.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// Tensors by index, of one dtype; each is written once, or summed up when the
// array holds gradients. Thread-safe.
class TensorArray : public Resource {
 public:
  struct Options {
    DType dtype = DType::kInvalid;
    Shape element_shape = Shape::UnknownRank();
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool sums = false;  // an array of gradients
  };
  TensorArray(Options options, int64_t size)
      : options_(std::move(options)), items_(size) {}
  std::string DebugString() const override { return "TensorArray"; }
  DType dtype() const { return options_.dtype; }

  // InvalidArgument for an index outside, a wrong dtype or shape, or a second
  // write (unless summing).
  Status Write(int64_t index, const Tensor& value);
  // InvalidArgument for what was never written (gradients: zeros) or cleared.
  StatusOr<Tensor> Read(int64_t index);
  int64_t size() const;
  void Clear();
  // The array of gradients that `source` names, made at first use; its items
  // have `prepended` before the shapes of what they are gradients of.
  std::shared_ptr<TensorArray> GradientOf(const std::string& source,
                                          const Shape& prepended = Shape());

 private:
  struct Item {
    Tensor value;
    // Of what was written, also when it was cleared; in an array of gradients,
    // of what the gradient is of.
    Shape shape = Shape::UnknownRank();
    bool cleared = false;
  };

 public:
  static constexpr size_t kItemBytes = sizeof(Item);

 private:
  StatusOr<Item*> At(int64_t index, bool grow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::vector<Item> items_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<TensorArray>> gradients_
      ABSL_GUARDED_BY(mutex_);
};

// Arrays as graphs of versions 16 to 26 hand them on: by two strings, a
// container and a name. The tensor of strings that this makes keeps the array;
// copies of the strings alone name it while that tensor lives, as upstream's
// name it in its step.
Tensor TextHandleOf(std::shared_ptr<TensorArray> array, StringView name);
// InvalidArgument for what is not two strings, NotFound for an array that does
// not exist (any more).
StatusOr<std::shared_ptr<TensorArray>> ArrayOfText(const Tensor& handle);

}  // namespace headrace
