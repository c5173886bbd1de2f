#include "distributed/grpc/buffers.h"

#include <grpcpp/support/slice.h>

#include <vector>

namespace headrace::distributed {
namespace {

using Owner = std::shared_ptr<const void>;

// What is shorter is copied: an owner takes as long.
constexpr size_t kCopied = 512;

grpc::Slice ToSlice(const Bytes::Piece& piece) {
  if (piece.size <= kCopied || piece.owner == nullptr) {
    return grpc::Slice(piece.data, piece.size);
  }
  return grpc::Slice(
      const_cast<char*>(piece.data), piece.size,
      [](void* owner) { delete static_cast<Owner*>(owner); },
      new Owner(piece.owner));
}

}  // namespace

grpc::ByteBuffer ToBuffer(const Bytes& bytes) {
  std::vector<grpc::Slice> slices;
  slices.reserve(bytes.pieces().size());
  for (const Bytes::Piece& piece : bytes.pieces()) {
    slices.push_back(ToSlice(piece));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Bytes FromBuffer(const grpc::ByteBuffer& buffer) {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  Bytes bytes;
  if (!buffer.Valid() || !buffer.Dump(slices.get()).ok()) return bytes;
  // Short slices lie in their objects, which stay where they are.
  for (const grpc::Slice& slice : *slices) {
    bytes.Append(
        {slices, reinterpret_cast<const char*>(slice.begin()), slice.size()});
  }
  return bytes;
}

}  // namespace headrace::distributed
