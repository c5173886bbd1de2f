// Numbers and strings as bytes that sort as they do: the form of the keys under
// which checkpoints keep slices. The Get functions take from the front of `*in`
// and return false (leaving it unspecified) when the bytes are no such code.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace headrace {

// One byte n, then the number's n significant bytes, high ones first.
void PutOrderedNumber(std::string* out, uint64_t v);
bool GetOrderedNumber(absl::string_view* in, uint64_t* v);

// 1 to 10 bytes; the leading bits tell the length: a number of n bytes starts
// with n ones and a zero when it is not negative, with n zeros and a one when
// it is, and the rest is its low 7 n - 1 bits and sign, high ones first.
void PutOrderedSigned(std::string* out, int64_t v);
bool GetOrderedSigned(absl::string_view* in, int64_t* v);

// The string, with 00 as 00 FF and FF as FF 00, and 00 01 behind.
void PutOrderedString(std::string* out, absl::string_view s);
bool GetOrderedString(absl::string_view* in, std::string* s);

}  // namespace headrace
