#include "tensor/buffer.h"

#include <memory>
#include <new>
#include <string>

#include "base/allocator.h"
#include "base/nested.h"
#include "base/sandbox.h"
#include "tensor/string_memory.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

// The header's place before the data: 64 bytes, so that data keep the block's
// alignment, which vector loops and Tensor's users count on.
constexpr size_t kHeader = 64;
static_assert(sizeof(Buffer) <= kHeader);
// From this many bytes on, data begin at a page, as their block does: devices
// then read and write them in place (WritableFile::WriteThrough).
constexpr size_t kPaged = 1 << 20;
constexpr size_t kPage = 4096;

constexpr size_t HeaderOf(size_t bytes) {
  return bytes >= kPaged ? kPage : kHeader;
}

using ObjectTypes = TypeList<std::string, Variant, ResourceHandle>;

}  // namespace

const void* internal::BlockOfData(const void* data, size_t bytes) {
  return static_cast<const char*>(data) - HeaderOf(bytes);
}

[[gnu::hot]] Buffer* Buffer::Allocate(DType dtype, int64_t count) {
  size_t bytes;
  // A product that wraps round would give a small block for a large tensor.
  // kPage is room for the larger of the two headers.
  if (__builtin_mul_overflow(static_cast<size_t>(count), DTypeSize(dtype),
                             &bytes) ||
      bytes > SIZE_MAX - kPage) {
    return nullptr;
  }
  if (InSandbox() && !CheckSandboxTensor(bytes).ok()) [[unlikely]]
    return nullptr;
  char* block = static_cast<char*>(AllocateMemory(HeaderOf(bytes) + bytes));
  if (block == nullptr) return nullptr;
  Buffer* buffer = new (block) Buffer;
  buffer->data_ = block + HeaderOf(bytes);
  buffer->bytes_ = bytes;
  if (!IsPlain(dtype)) {
    buffer->object_type_ = dtype;
    DispatchDType(dtype, ObjectTypes{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      // Plain elements stay uninitialised (the kernel writes them all), objects
      // must exist to be assigned to.
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

[[gnu::hot]] void Buffer::Destroy() {
  // Variants may hold tensors of variants, and so may resources.
  const auto end = [](void* self) {
    auto* const b = static_cast<Buffer*>(self);
    if (b->object_type_ != DType::kInvalid) {
      DispatchDType(b->object_type_, ObjectTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        std::destroy_n(static_cast<T*>(b->data_), b->bytes_ / sizeof(T));
      });
    }
    const size_t size = b->release_ ? kHeader : HeaderOf(b->bytes_) + b->bytes_;
    b->~Buffer();
    FreeMemory(b, size);
  };
  // First: the owner's memory must be there while it is released, and the
  // header, which holds release_, is ours and goes last.
  if (release_) release_(owner_);
  const bool nests =
      object_type_ == DType::kVariant || object_type_ == DType::kResource;
  nests ? DestroyNested(this, end) : end(this);
}

}  // namespace headrace
