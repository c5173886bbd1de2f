// Fuzz target: answers to RecvTensor, whole and in parts, and parts of many
// tensors must only ever give errors or tensors that can be written again. The
// first byte says into what pieces the rest is cut.
#include <cstdint>
#include <cstdlib>

#include "distributed/wire/gathered.h"
#include "distributed/wire/tensor_codec.h"

using headrace::distributed::Bytes;

namespace {

Bytes InPieces(const std::string& text, size_t size) {
  Bytes bytes;
  for (size_t at = 0; at < text.size(); at += size) {
    bytes.Append(text.substr(at, size));
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace::distributed;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] == 0 ? text.size() + 1 : data[0];
  const auto whole = DecodeReceived(InPieces(text, piece));
  // A few bytes may say one string for all of millions of elements; written
  // again, each takes a message of its own, gigabytes under a sanitizer.
  if (whole.ok() && whole->tensor.num_elements() <= 1 << 20) {
    const auto again = EncodeReceived(*whole);
    if (again.ok()) {
      const auto same = DecodeReceived(*again);
      if (!same.ok() ||
          same->tensor.num_elements() != whole->tensor.num_elements()) {
        std::abort();
      }
    }
  }
  const auto many = ReadGathered(InPieces(text, piece));
  if (many.ok()) {
    GatheredWriter again;
    for (const GatheredTensor& t : *many) {
      if (t.received.tensor.num_elements() > 1 << 20) return 0;
      if (!again.Add(t).ok()) return 0;
    }
    const auto same = ReadGathered(again.Take());
    if (!same.ok() || same->size() != many->size()) std::abort();
  }
  // The first piece as the head of parts, the others as what follows it.
  TensorParts parts(1 << 20);
  const Bytes cut = InPieces(text, piece);
  for (const Bytes::Piece& p : cut.pieces()) {
    if (!parts.Add(Bytes(std::string(p.data, p.size))).ok()) return 0;
  }
  (void)parts.Finish();
  return 0;
}
