// Bytes as gRPC has them, neither way copied.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "distributed/transport.h"

namespace headrace::distributed {

// The longest message that gRPC can carry.
inline constexpr size_t kLongestMessage = UINT32_MAX;

grpc::ByteBuffer ToBuffer(const Bytes& bytes);
Bytes FromBuffer(const grpc::ByteBuffer& buffer);

// A map of gRPC's texts.
template <typename Texts>
Metadata FromTexts(const Texts& texts) {
  Metadata metadata;
  for (const auto& [key, value] : texts) {
    metadata.emplace(std::string(key.data(), key.size()),
                     std::string(value.data(), value.size()));
  }
  return metadata;
}

}  // namespace headrace::distributed
