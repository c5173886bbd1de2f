#include "distributed/wire/gathered.h"

#include <utility>

#include "distributed/wire/fields.h"

namespace headrace::distributed {
namespace {

// Of a part: its tensors.
constexpr uint32_t kItem = 1 << 3 | kLength;
// Of a tensor.
constexpr uint32_t kNumber = 1 << 3 | kVarint, kInParts = 2 << 3 | kVarint,
                   kReceived = 3 << 3 | kLength;

// A piece costs more than the copy of so many bytes.
constexpr size_t kCopied = 1024;

Status NoPart(StringView why) {
  return InvalidArgument("not a part of tensors: ", why);
}

StatusOr<GatheredTensor> ReadItem(const Bytes& item) {
  GatheredTensor tensor;
  Bytes received;
  bool fits = true;
  const char* const why =
      ForFields(item, [&](uint32_t tag, uint64_t value, Bytes text) {
        if (tag == kNumber) {
          fits &= value <= UINT32_MAX;
          tensor.number = static_cast<uint32_t>(value);
        }
        if (tag == kInParts) tensor.in_parts = value != 0;
        if (tag == kReceived) received.Append(std::move(text));
      });
  if (why != nullptr) return NoPart(why);
  if (!fits) return NoPart("a number of more than 32 bits");
  if (!tensor.in_parts) {
    HR_ASSIGN_OR_RETURN(tensor.received, DecodeReceived(received));
  }
  return tensor;
}

}  // namespace

Status GatheredWriter::Add(const GatheredTensor& tensor) {
  Bytes received;
  std::string head;
  PutVarint(kNumber, &head);
  PutVarint(tensor.number, &head);
  if (tensor.in_parts) {
    PutVarint(kInParts, &head);
    PutVarint(1, &head);
  } else {
    HR_ASSIGN_OR_RETURN(received, EncodeReceived(tensor.received));
    PutVarint(kReceived, &head);
    PutVarint(received.size(), &head);
  }
  PutVarint(kItem, &text_);
  PutVarint(head.size() + received.size(), &text_);
  text_ += head;
  for (const Bytes::Piece& piece : received.pieces()) {
    if (piece.size <= kCopied) {
      text_.append(piece.data, piece.size);
    } else {
      message_.Append(std::exchange(text_, {}));
      message_.Append(piece);
    }
  }
  return OkStatus();
}

Bytes GatheredWriter::Take() {
  message_.Append(std::exchange(text_, {}));
  return std::exchange(message_, {});
}

StatusOr<std::vector<GatheredTensor>> ReadGathered(const Bytes& part) {
  std::vector<GatheredTensor> found;
  Status failed;
  const char* const why =
      ForFields(part, [&](uint32_t tag, uint64_t /*value*/, Bytes text) {
        if (tag != kItem || !failed.ok()) return;
        StatusOr<GatheredTensor> item = ReadItem(text);
        if (item.ok()) {
          found.push_back(*std::move(item));
        } else {
          failed = item.status();
        }
      });
  if (why != nullptr) return NoPart(why);
  HR_RETURN_IF_ERROR(failed);
  return found;
}

}  // namespace headrace::distributed
