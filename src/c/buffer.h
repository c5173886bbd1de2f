// Bytes for callers, and protos read from theirs.
#pragma once

#include <climits>
#include <string>

#include "base/status.h"
#include "google/protobuf/message_lite.h"
#include "tensorflow/c/tf_buffer.h"

namespace headrace::capi {

// The bytes, copied into memory that the buffer owns; what it had is freed.
Status SetBuffer(TF_Buffer* out, StringView bytes);
// The same of a proto in its wire form, with maps in order of their keys.
Status SetBuffer(TF_Buffer* out, const google::protobuf::MessageLite& proto);
// A new buffer, the caller's.
StatusOr<TF_Buffer*> NewBuffer(const google::protobuf::MessageLite& proto);

// InvalidArgument "Unparseable NAME proto".
Status ReadProto(const void* data, size_t length, StringView name,
                 google::protobuf::MessageLite* proto);

}  // namespace headrace::capi
