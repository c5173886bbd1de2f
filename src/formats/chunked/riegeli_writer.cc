#include "base/coding.h"
#include "formats/chunked/riegeli.h"
#include "formats/chunked/riegeli_layout.h"

namespace headrace {

StatusOr<RiegeliWriter> RiegeliWriter::Create(WritableFile* file) {
  RiegeliWriter writer(file);
  HR_RETURN_IF_ERROR(writer.WriteChunk(riegeli::kSignature, "", "", 0, 0));
  return writer;
}

StatusOr<uint64_t> RiegeliWriter::Write(StringView record) {
  std::string sizes;
  PutVarint64(&sizes, record.size());
  std::string head(1, riegeli::kPlain);
  PutVarint64(&head, sizes.size());
  head += sizes;
  const uint64_t place = at_;
  HR_RETURN_IF_ERROR(
      WriteChunk(riegeli::kSimple, head, record, 1, record.size()));
  return place;
}

// The chunk's data is `head` and `data`; large data is not copied.
Status RiegeliWriter::WriteChunk(char type, StringView head, StringView data,
                                 uint64_t num_records, uint64_t decoded_size) {
  using namespace riegeli;
  HighwayHash hash(kHashKey);
  hash.Update(head);
  hash.Update(data);
  std::string fields;
  PutFixed64(&fields, head.size() + data.size());
  PutFixed64(&fields, hash.Finish());
  PutFixed64(&fields, static_cast<unsigned char>(type) | num_records << 8);
  PutFixed64(&fields, decoded_size);
  std::string front;
  PutFixed64(&front, HashOf(fields));
  front += fields;
  front.append(head.data(), head.size());

  const uint64_t begin = at_;
  const uint64_t end = ChunkEnd(begin, head.size() + data.size(), num_records);
  // A chunk of one record needs no padding.
  for (StringView part : {StringView(front), data}) {
    while (!part.empty()) {
      if (at_ % kBlock == 0) {
        std::string distances;
        PutFixed64(&distances, at_ - begin);
        PutFixed64(&distances, end - at_);
        std::string header;
        PutFixed64(&header, HashOf(distances));
        HR_RETURN_IF_ERROR(file_->Append(header + distances));
        at_ += kBlockHeader;
      }
      const StringView some = part.substr(0, kBlock - at_ % kBlock);
      HR_RETURN_IF_ERROR(file_->Append(some));
      at_ += some.size();
      part.remove_prefix(some.size());
    }
  }
  return OkStatus();
}

}  // namespace headrace
