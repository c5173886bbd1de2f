#include "c/buffer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "absl/strings/match.h"
#include "c/status.h"

namespace headrace::capi {
namespace {

void FreeBytes(void* data, size_t) { std::free(data); }

void Clear(TF_Buffer* buffer) {
  if (buffer->data_deallocator && buffer->data) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  *buffer = TF_Buffer{};
}

}  // namespace

Status SetBuffer(TF_Buffer* out, StringView bytes) {
  HR_RETURN_IF_ERROR(NotNull(out, "the buffer for the result"));
  // Never null: callers tell an empty result from none by the pointer.
  void* copy = std::malloc(bytes.empty() ? 1 : bytes.size());
  if (copy == nullptr) {
    return ResourceExhausted("no memory for a buffer of ", bytes.size(),
                             " bytes");
  }
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  Clear(out);
  *out = TF_Buffer{copy, bytes.size(), FreeBytes};
  return OkStatus();
}

Status SetBuffer(TF_Buffer* out, const google::protobuf::MessageLite& proto) {
  if (proto.ByteSizeLong() > INT_MAX) {
    return InvalidArgument("The ", proto.GetTypeName(), " would take ",
                           proto.ByteSizeLong(),
                           " bytes, more than the 2 GiB that protos may have");
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (!proto.SerializeToCodedStream(&coded)) {
      return Internal("cannot write the ", proto.GetTypeName());
    }
  }
  return SetBuffer(out, bytes);
}

StatusOr<TF_Buffer*> NewBuffer(const google::protobuf::MessageLite& proto) {
  auto buffer = std::make_unique<TF_Buffer>();
  *buffer = TF_Buffer{};
  HR_RETURN_IF_ERROR(SetBuffer(buffer.get(), proto));
  return buffer.release();
}

Status ReadProto(const void* data, size_t length, StringView name,
                 google::protobuf::MessageLite* proto) {
  if (length > 0) HR_RETURN_IF_ERROR(NotNull(data, name));
  // protobuf counts bytes in an int.
  if (length > INT_MAX ||
      !proto->ParseFromArray(data, static_cast<int>(length))) {
    // As upstream has it: ConfigProto is the one word, RunOptions wants
    // another.
    const bool named = absl::EndsWith(name, "Proto");
    return InvalidArgument("Unparseable ", name, named ? "" : " proto");
  }
  return OkStatus();
}

}  // namespace headrace::capi

TF_Buffer* TF_NewBuffer() {
  return new (std::nothrow) TF_Buffer{nullptr, 0, nullptr};
}

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  if (proto == nullptr && proto_len > 0) return nullptr;
  std::unique_ptr<TF_Buffer> buffer(TF_NewBuffer());
  if (!buffer) return nullptr;
  const headrace::StringView bytes(static_cast<const char*>(proto), proto_len);
  if (!headrace::capi::SetBuffer(buffer.get(), bytes).ok()) return nullptr;
  return buffer.release();
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (buffer == nullptr) return;
  headrace::capi::Clear(buffer);
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) {
  return buffer ? *buffer : TF_Buffer{nullptr, 0, nullptr};
}
