// What attributes' values are for callers: of operations, and of kernels that
// are made.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "c/attr_values.h"
#include "tensorflow/c/c_api.h"

namespace headrace::capi {

TF_AttrMetadata MetadataOf(const AttrValue& value);

// Calls read(the value as a T), a Status; InvalidArgument where it is no T.
template <typename T, typename F>
Status ReadAttr(const AttrValue& value, F&& read) {
  const T* v = std::get_if<T>(&value);
  if (v == nullptr) {
    return InvalidArgument("AttrValue had value with type '",
                           AttrKindName(value.kind()), "' when '",
                           AttrKindName(AttrValue(T()).kind()), "' expected");
  }
  return read(*v);
}

// As far as there is room. InvalidArgument where `storage` is too small.
Status CopyStrings(const std::vector<std::string>& from, void** values,
                   size_t* lengths, int room, void* storage, size_t size);
// The tensors are the caller's.
Status CopyTensors(const std::vector<Tensor>& from, TF_Tensor** values,
                   int room);
template <typename T, typename Out>
Status CopyNumbers(const std::vector<T>& from, Out* out, int room) {
  const size_t count = std::min<size_t>(std::max(room, 0), from.size());
  if (count > 0) HR_RETURN_IF_ERROR(NotNull(out, "values"));
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Out>(from[i]);
  return OkStatus();
}

}  // namespace headrace::capi
