// Elements of tensors as JSON, at the end of a text.
#pragma once

#include <charconv>
#include <string>
#include <type_traits>

#include "serving/json/json_writer.h"
#include "tensor/dtype.h"

namespace headrace::serving {

// `base64`: how strings are written.
template <typename T>
void AppendElement(const T& value, bool base64, std::string* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (base64) {
      AppendBase64(value, out);
    } else {
      AppendJsonString(value, out);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendJsonNumber(value, out);
  } else {
    char text[24];
    const auto written = std::to_chars(text, text + sizeof(text), value);
    out->append(text, written.ptr - text);
  }
}

// The types that have JSON values.
using WrittenTypes =
    TypeList<float, double, int32_t, int64_t, int8_t, int16_t, uint8_t,
             uint16_t, uint32_t, uint64_t, bool, std::string>;

}  // namespace headrace::serving
