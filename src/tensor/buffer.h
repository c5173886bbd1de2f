// Reference-counted memory behind tensors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tensor/dtype.h"

namespace headrace {

// A block of memory with an atomic reference count. Either allocated here
// (64-byte aligned, header and data in one block) or wrapped around memory
// that somebody else owns, who is told when the last reference goes.
class Buffer {
 public:
  using ReleaseFn = void (*)(void* owner);

  // `count` elements of `dtype`: plain types are left uninitialised, objects
  // are default constructed. Null when memory (or its limit) is exhausted.
  static Buffer* Allocate(DType dtype, int64_t count);
  // Wraps `data`; `release(owner)` runs at the end.
  static Buffer* Wrap(void* data, size_t bytes, void* owner, ReleaseFn release);

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Destroy();
    }
  }
  // True when the caller holds the only reference.
  bool unique() const { return refs_.load(std::memory_order_acquire) == 1; }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // False for wrapped memory, which must not be written in place.
  bool owned() const { return release_ == nullptr; }

 private:
  Buffer() = default;
  void Destroy();

  std::atomic<int32_t> refs_{1};
  DType object_type_ = DType::kInvalid;  // set when elements need destruction
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void* owner_ = nullptr;
  ReleaseFn release_ = nullptr;
};

// A counted pointer to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer* adopted) : p_(adopted) {}
  BufferRef(const BufferRef& o) : p_(o.p_) {
    if (p_) p_->Ref();
  }
  BufferRef(BufferRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~BufferRef() {
    if (p_) p_->Unref();
  }
  Buffer* get() const { return p_; }
  Buffer* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  Buffer* p_ = nullptr;
};

}  // namespace headrace
