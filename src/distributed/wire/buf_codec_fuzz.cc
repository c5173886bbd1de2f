// Fuzz target: answers to RecvBuf must only ever give errors or as many bytes
// as were asked for, which can be written again. The first byte says into what
// pieces the rest is cut, the second how many bytes are asked for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "distributed/wire/buf_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;
  if (size < 2) return 0;
  const size_t piece = std::max<size_t>(data[0], 1), wanted = data[1];
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  Bytes bytes;
  for (size_t at = 0; at < text.size(); at += piece) {
    bytes.Append(text.substr(at, piece));
  }
  const auto content = DecodeBuf(bytes, wanted);
  if (!content.ok()) return 0;
  const auto again = DecodeBuf(EncodeBuf(*content), wanted);
  if (content->size() != wanted || !again.ok() ||
      again->Flat() != content->Flat()) {
    std::abort();
  }
  return 0;
}
