// Counted memory that holds TF_TStrings.
#pragma once

#include <cstdlib>

#include "tensorflow/c/tf_tstring.h"

namespace headrace::capi {

// Either ours, whose strings are freed with it, or a caller's, who sees to
// them.
class Strings {
 public:
  using Deallocator = void (*)(void* data, size_t len, void* arg);

  // Empty ones; data() is null where memory ended.
  explicit Strings(int64_t count)
      : count_(count),
        data_(std::calloc(count > 0 ? count : 1, sizeof(TF_TString))) {}
  Strings(void* data, size_t len, Deallocator deallocator, void* arg)
      : data_(data), len_(len), deallocator_(deallocator), arg_(arg) {}
  ~Strings() {
    if (deallocator_) deallocator_(data_, len_, arg_);
    for (int64_t i = 0; data_ && i < count_; ++i) TF_StringDealloc(&at(i));
    if (count_ >= 0) std::free(data_);
  }
  Strings(const Strings&) = delete;

  void* data() const { return data_; }
  TF_TString& at(int64_t i) const { return static_cast<TF_TString*>(data_)[i]; }

 private:
  const int64_t count_ = -1;  // of strings that are ours
  void* const data_;
  const size_t len_ = 0;
  const Deallocator deallocator_ = nullptr;
  void* const arg_ = nullptr;
};

}  // namespace headrace::capi
