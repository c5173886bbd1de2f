// RecvBufResponse, TensorFlow's message of a part of a collective, written
// around the part's own memory and read from pieces.
#pragma once

#include "base/status.h"
#include "distributed/wire/bytes.h"

namespace headrace::distributed {

// The message: a piece of head, and the bytes as they lie.
Bytes EncodeBuf(const Bytes& content);

// The bytes in it, which are not copied. InvalidArgument where it is no such
// message, carries its bytes in a way other than EncodeBuf's, or does not have
// `size` of them. No memory is taken for them.
StatusOr<Bytes> DecodeBuf(const Bytes& bytes, size_t size);

}  // namespace headrace::distributed
