#include "distributed/data_service/element_wire.h"

#include "base/coding.h"
#include "distributed/messages.h"
#include "distributed/wire/piece_reader.h"
#include "distributed/wire/tensor_codec.h"
#include "formats/snappy.h"
#include "headrace/data_service.pb.h"

namespace headrace::distributed::data_service {
namespace {

// Of a head: what says more of itself is none.
constexpr uint64_t kLongestHead = uint64_t{1} << 28;

Status EncodeParts(const Element& element, std::vector<Bytes>* parts) {
  for (const Tensor& t : element) {
    ReceivedTensor component;
    component.tensor = t;
    HR_ASSIGN_OR_RETURN(Bytes bytes, EncodeReceived(component));
    parts->push_back(std::move(bytes));
  }
  return OkStatus();
}

// All in one piece.
Bytes Squeezed(const std::vector<Bytes>& parts) {
  std::string all, packed;
  for (const Bytes& part : parts) all += part.Flat();
  SnappyPack(all, &packed);
  return Bytes(std::move(packed));
}

StatusOr<Element> DecodeParts(PieceReader* reader,
                              const ElementsHead::Item& item) {
  Element element;
  for (const int64_t size : item.sizes()) {
    Bytes part;
    if (size < 0 || !reader->Take(static_cast<size_t>(size), &part)) {
      return InvalidArgument("an element is cut");
    }
    HR_ASSIGN_OR_RETURN(ReceivedTensor received, DecodeReceived(part));
    if (received.is_dead) return InvalidArgument("an element is dead");
    element.push_back(std::move(received.tensor));
  }
  return element;
}

StatusOr<Element> DecodePacked(const Bytes& bytes,
                               const ElementsHead::Item& item) {
  std::string plain;
  if (!SnappyUnpack(bytes.Flat(), &plain)) {
    return InvalidArgument("an element cannot be unpacked");
  }
  const Bytes whole(std::move(plain));
  PieceReader reader(whole);
  ElementsHead::Item inner;
  // The first of its sizes is that of the packed bytes.
  for (int i = 1; i < item.sizes_size(); ++i) inner.add_sizes(item.sizes(i));
  return DecodeParts(&reader, inner);
}

// False where the bytes end within it: nothing behind it can be read either.
bool TakeItem(PieceReader* reader, const ElementsHead::Item& item,
              StatusOr<Element>* out) {
  Bytes bytes;
  for (int i = 0; i < (item.packed() ? 1 : item.sizes_size()); ++i) {
    const int64_t size = item.sizes(i);
    if (size < 0 || !reader->Take(static_cast<size_t>(size), &bytes)) {
      return false;
    }
  }
  if (item.code() != 0) {
    *out = Status(static_cast<absl::StatusCode>(item.code()), item.message());
  } else if (item.packed()) {
    *out = DecodePacked(bytes, item);
  } else {
    PieceReader parts(bytes);
    *out = DecodeParts(&parts, item);
  }
  return true;
}

}  // namespace

Packed Pack(const StatusOr<Element>& element, bool by_snappy) {
  Packed packed;
  packed.status =
      element.ok() ? EncodeParts(*element, &packed.parts) : element.status();
  if (!packed.status.ok()) packed.parts.clear();
  packed.by_snappy = by_snappy && packed.status.ok() && !packed.parts.empty();
  for (const Bytes& part : packed.parts) packed.bytes += part.size();
  return packed;
}

Bytes WriteElements(const std::vector<Packed>& items, bool end) {
  ElementsHead head;
  head.set_end(end);
  Bytes body;
  for (const Packed& packed : items) {
    auto* item = head.add_items();
    item->set_code(static_cast<int>(packed.status.code()));
    item->set_message(std::string(packed.status.message()));
    item->set_packed(packed.by_snappy);
    if (packed.by_snappy) {
      Bytes all = Squeezed(packed.parts);
      item->add_sizes(static_cast<int64_t>(all.size()));
      body.Append(std::move(all));
    }
    for (const Bytes& part : packed.parts) {
      item->add_sizes(static_cast<int64_t>(part.size()));
      if (!packed.by_snappy) body.Append(part);
    }
  }
  std::string text;
  PutVarint64(&text, head.ByteSizeLong());
  Bytes out(text + head.SerializeAsString());
  out.Append(std::move(body));
  return out;
}

StatusOr<ReadElements> ReadAnswer(const Bytes& bytes) {
  const Status bad = InvalidArgument("an answer of the data service is cut");
  PieceReader reader(bytes);
  uint64_t size;
  Bytes head_bytes;
  if (!reader.ReadVarint(&size) || size > kLongestHead ||
      !reader.Take(size, &head_bytes)) {
    return bad;
  }
  ElementsHead head;
  HR_RETURN_IF_ERROR(ReadMessage(head_bytes, &head));
  ReadElements out;
  out.end = head.end();
  for (const auto& item : head.items()) {
    if (item.packed() && item.sizes().empty()) return bad;
    StatusOr<Element> element = Element();
    if (!TakeItem(&reader, item, &element)) return bad;
    out.items.push_back(std::move(element));
  }
  if (reader.left() != 0) return bad;
  return out;
}

}  // namespace headrace::distributed::data_service
