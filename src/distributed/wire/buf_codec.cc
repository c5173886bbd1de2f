#include "distributed/wire/buf_codec.h"

#include "distributed/wire/fields.h"

namespace headrace::distributed {
namespace {

// Of RecvBufResponse, of google.protobuf.Any, and of RecvBufRespExtra.
constexpr uint32_t kDead = 3, kTransportOptions = 4;
constexpr uint32_t kTypeUrl = 1, kValue = 2;
constexpr uint32_t kTensorContent = 1;
constexpr char kType[] = "type.googleapis.com/tensorflow.RecvBufRespExtra";

constexpr uint32_t TextTag(uint32_t number) { return number << 3 | kLength; }

void PutHead(uint32_t number, size_t size, std::string* out) {
  PutVarint(TextTag(number), out);
  PutVarint(size, out);
}
size_t FieldSize(size_t size) { return 1 + VarintSize(size) + size; }

Status NoBuf(StringView why) {
  return InvalidArgument("not a RecvBufResponse: ", why);
}

Status EachBufField(const Bytes& bytes, auto f) {
  const char* const why = ForFields(bytes, std::move(f));
  return why == nullptr ? OkStatus() : NoBuf(why);
}

}  // namespace

Bytes EncodeBuf(const Bytes& content) {
  const size_t extra = FieldSize(content.size());
  std::string head;
  PutHead(kTransportOptions, FieldSize(sizeof(kType) - 1) + FieldSize(extra),
          &head);
  PutHead(kTypeUrl, sizeof(kType) - 1, &head);
  head += kType;
  PutHead(kValue, extra, &head);
  PutHead(kTensorContent, content.size(), &head);
  Bytes message(std::move(head));
  message.Append(content);
  return message;
}

StatusOr<Bytes> DecodeBuf(const Bytes& bytes, size_t size) {
  // What comes twice is put together.
  Bytes options, extra, content;
  std::string type;
  bool dead = false;
  HR_RETURN_IF_ERROR(
      EachBufField(bytes, [&](uint32_t tag, uint64_t value, Bytes text) {
        if (tag == (kDead << 3 | kVarint)) dead = value != 0;
        if (tag == TextTag(kTransportOptions)) options.Append(std::move(text));
      }));
  if (dead) return NoBuf("it is dead, which no part of a collective is");
  HR_RETURN_IF_ERROR(
      EachBufField(options, [&](uint32_t tag, uint64_t, Bytes text) {
        if (tag == TextTag(kTypeUrl) && text.size() < 2 * sizeof(kType)) {
          type = text.Flat();
        }
        if (tag == TextTag(kValue)) extra.Append(std::move(text));
      }));
  if (type != kType) return NoBuf("it brings no RecvBufRespExtra");
  HR_RETURN_IF_ERROR(
      EachBufField(extra, [&](uint32_t tag, uint64_t, Bytes text) {
        if (tag == TextTag(kTensorContent)) content.Append(std::move(text));
      }));
  if (content.size() != size) {
    return NoBuf(
        absl::StrCat(content.size(), " bytes where ", size, " were due"));
  }
  return content;
}

}  // namespace headrace::distributed
