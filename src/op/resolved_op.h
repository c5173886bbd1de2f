// An op with its attributes complete and its types decided.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/mutex.h"
#include "op/op_def.h"

namespace headrace {

// The inputs (outputs) of the call that one ArgDef names: [begin, end).
struct ArgRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

// Immutable and shared by all calls and nodes alike: two calls with the same
// op, dtypes and attributes have the same ResolvedOp. Thread-safe.
class ResolvedOp {
 public:
  ResolvedOp();
  ~ResolvedOp();
  const OpDef& def() const { return *def_; }
  const std::string& name() const { return def_->name; }
  // Every attribute of the definition, defaults and inferred ones included,
  // plus those starting with "_".
  const AttrMap& attrs() const { return attrs_; }
  absl::Span<const DType> input_types() const { return input_types_; }
  absl::Span<const DType> output_types() const { return output_types_; }
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  // Where the i-th ArgDef's tensors stand among all inputs (outputs).
  ArgRange input_range(int i) const { return input_ranges_[i]; }
  ArgRange output_range(int i) const { return output_ranges_[i]; }
  ArgRange input_range(StringView name) const;

  // The attribute as a T; the definition must declare it with that kind.
  template <typename T>
  const T& attr(StringView name) const {
    const T* v = attrs_.Get<T>(name);
    if (v == nullptr) [[unlikely]]
      MissingAttr(name);
    return *v;
  }
  int64_t int_attr(StringView name) const { return attr<int64_t>(name); }
  bool bool_attr(StringView name) const { return attr<bool>(name); }
  float float_attr(StringView name) const { return attr<float>(name); }
  const std::string& string_attr(StringView name) const {
    return attr<std::string>(name);
  }
  DType type_attr(StringView name) const { return attr<DType>(name); }

  // The kernel that eager runs, bound at the first call and then kept, with
  // its state (a random op's counter); the error of binding otherwise.
  StatusOr<Kernel*> EagerKernel() const {
    Kernel* k = eager_kernel_.load(std::memory_order_acquire);
    if (k) [[likely]]
      return k;
    return BindEagerKernel();
  }

 private:
  friend StatusOr<std::shared_ptr<const ResolvedOp>> ResolveOp(
      const OpDef& def, absl::Span<const DType> input_types,
      const AttrMap& attrs);
  [[noreturn]] void MissingAttr(StringView name) const;
  Status InferAttrs(absl::Span<const DType> input_types);
  Status CheckAttrs() const;
  Status SetTypes();

  StatusOr<Kernel*> BindEagerKernel() const;

  const OpDef* def_ = nullptr;
  mutable std::atomic<Kernel*> eager_kernel_{nullptr};
  mutable Mutex bind_mutex_;
  mutable std::unique_ptr<Kernel> owned_kernel_ ABSL_GUARDED_BY(bind_mutex_);
  AttrMap attrs_;
  std::vector<DType> input_types_;
  std::vector<DType> output_types_;
  std::vector<ArgRange> input_ranges_;
  std::vector<ArgRange> output_ranges_;
};
using ResolvedOpPtr = std::shared_ptr<const ResolvedOp>;

// Completes `attrs` with what the input dtypes say and with defaults, and
// checks everything against the definition: InvalidArgument with upstream's
// kind of text when a dtype, count or attribute is wrong. Equal questions get
// the same pointer (except for ops with tensor attributes).
StatusOr<ResolvedOpPtr> ResolveOp(const OpDef& def,
                                  absl::Span<const DType> input_types,
                                  const AttrMap& attrs);

// Forgets what ResolveOp shares, so that stateful kernels start afresh (as
// tf.random.set_seed asks). Who keeps ResolvedOpPtrs must compare epochs.
void ForgetResolvedOps();
uint64_t ResolvedOpEpoch();

}  // namespace headrace
