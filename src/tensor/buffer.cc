#include "tensor/buffer.h"

#include <memory>
#include <new>
#include <string>

#include "base/allocator.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

constexpr size_t kHeader = 64;
static_assert(sizeof(Buffer) <= kHeader);

using ObjectTypes = TypeList<std::string, Variant, ResourceHandle>;

}  // namespace

Buffer* Buffer::Allocate(DType dtype, int64_t count) {
  size_t bytes;
  if (__builtin_mul_overflow(static_cast<size_t>(count), DTypeSize(dtype),
                             &bytes) ||
      bytes > SIZE_MAX - kHeader) {
    return nullptr;
  }
  char* block = static_cast<char*>(AllocateMemory(kHeader + bytes));
  if (block == nullptr) return nullptr;
  Buffer* buffer = new (block) Buffer;
  buffer->data_ = block + kHeader;
  buffer->bytes_ = bytes;
  if (!IsPlain(dtype)) {
    buffer->object_type_ = dtype;
    DispatchDType(dtype, ObjectTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::uninitialized_value_construct_n(static_cast<T*>(buffer->data_),
                                           count);
    });
  }
  return buffer;
}

Buffer* Buffer::Wrap(void* data, size_t bytes, void* owner, ReleaseFn release) {
  char* block = static_cast<char*>(AllocateMemory(kHeader));
  if (block == nullptr) return nullptr;
  Buffer* buffer = new (block) Buffer;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->owner_ = owner;
  buffer->release_ = release;
  return buffer;
}

void Buffer::Destroy() {
  if (release_) {
    release_(owner_);
  } else if (object_type_ != DType::kInvalid) {
    DispatchDType(object_type_, ObjectTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::destroy_n(static_cast<T*>(data_), bytes_ / sizeof(T));
    });
  }
  const size_t size = kHeader + (release_ ? 0 : bytes_);
  this->~Buffer();
  FreeMemory(this, size);
}

}  // namespace headrace
