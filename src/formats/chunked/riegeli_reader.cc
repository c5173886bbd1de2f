#include <algorithm>

#include "base/coding.h"
#include "formats/chunked/riegeli.h"
#include "formats/chunked/riegeli_layout.h"
#include "formats/snappy.h"

namespace headrace {
namespace {

using namespace riegeli;

// No file is so large; sums of a few sizes below it cannot overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 62;
constexpr uint64_t kNumRecordsBits = 56;
constexpr uint64_t kMostReadings = 64;  // of a file's bytes

StatusOr<std::string> Unpacked(StringView packed, char packing,
                               const std::string& where) {
  if (packing == kPlain) return std::string(packed);
  uint64_t size;
  if (!GetVarint64(&packed, &size)) {
    return DataLoss(where, "a packed block has no size");
  }
  if (packing == kSnappy) {
    std::string out;
    if (!SnappyUnpack(packed, &out) || out.size() != size) {
      return DataLoss(where, "a block packed with Snappy is damaged");
    }
    return out;
  }
  if (packing == kBrotli || packing == kZstd) {
    return Unimplemented(where, "records packed with ",
                         packing == kBrotli ? "Brotli" : "Zstd",
                         " are not read, only plain ones and Snappy's");
  }
  return DataLoss(where, "expected a compression of 0, 'b', 's' or 'z', got ",
                  static_cast<int>(packing));
}

}  // namespace

bool IsRiegeli(StringView head) {
  if (head.size() < kRiegeliHeadBytes) return false;
  head = head.substr(kBlockHeader, kChunkHeader);
  return HashOf(head.substr(8)) == LoadFixed64(head.data()) &&
         head[24] == kSignature;
}

StatusOr<RiegeliReader> RiegeliReader::Open(const RandomAccessFile* file) {
  RiegeliReader reader(file);
  std::string head(std::min<uint64_t>(file->size(), kRiegeliHeadBytes), '\0');
  HR_RETURN_IF_ERROR(file->Read(0, absl::MakeSpan(head)));
  if (!IsRiegeli(head)) {
    return DataLoss(file->path(), ": the signature of a Riegeli file is ",
                    "missing or damaged at offset 0");
  }
  for (uint64_t at = 0; at < file->size();) {
    HR_ASSIGN_OR_RETURN(const Chunk chunk, reader.ReadHeader(at));
    HR_RETURN_IF_ERROR(reader.CheckBlockHeaders(chunk));
    at = chunk.end;
    if (chunk.num_records > 0) reader.chunks_.push_back(chunk);
  }
  return reader;
}

StatusOr<RiegeliReader::Chunk> RiegeliReader::ReadHeader(uint64_t begin) const {
  const std::string where =
      absl::StrCat(file_->path(), ": chunk at offset ", begin, ": ");
  std::string header(kChunkHeader, '\0');
  if (AddWithHeaders(begin, kChunkHeader) > file_->size()) {
    return DataLoss(where, "its header is cut at the end of the file, ",
                    file_->size());
  }
  uint64_t at = begin;
  HR_RETURN_IF_ERROR(ReadBetweenHeaders(&at, absl::MakeSpan(header)));
  if (HashOf(StringView(header).substr(8)) != LoadFixed64(header.data())) {
    return DataLoss(where, "the hash of its header does not match");
  }
  Chunk chunk;
  chunk.begin = begin;
  chunk.data_size = LoadFixed64(&header[8]);
  chunk.data_hash = LoadFixed64(&header[16]);
  chunk.type = header[24];
  chunk.num_records = LoadFixed64(&header[24]) >> (64 - kNumRecordsBits);
  chunk.decoded_size = LoadFixed64(&header[32]);
  if (chunk.data_size > kMostBytes) {
    return DataLoss(where, "it cannot have ", chunk.data_size, " bytes");
  }
  chunk.end = ChunkEnd(begin, chunk.data_size, chunk.num_records);
  if (chunk.end > file_->size()) {
    return DataLoss(where, "it ends at ", chunk.end,
                    ", behind the file's end, ", file_->size());
  }
  return chunk;
}

Status RiegeliReader::ReadBetweenHeaders(uint64_t* at,
                                         absl::Span<char> out) const {
  while (!out.empty()) {
    if (*at % kBlock == 0) *at += kBlockHeader;
    const size_t n = std::min<uint64_t>(out.size(), kBlock - *at % kBlock);
    HR_RETURN_IF_ERROR(file_->Read(*at, out.first(n)));
    *at += n;
    out.remove_prefix(n);
  }
  return OkStatus();
}

Status RiegeliReader::CheckBlockHeaders(const Chunk& chunk) const {
  uint64_t block = chunk.begin + LeftInBlock(chunk.begin);
  for (; block < chunk.end; block += kBlock) {
    std::string header(kBlockHeader, '\0');
    HR_RETURN_IF_ERROR(file_->Read(block, absl::MakeSpan(header)));
    if (HashOf(StringView(header).substr(8)) != LoadFixed64(&header[0]) ||
        LoadFixed64(&header[8]) != block - chunk.begin ||
        LoadFixed64(&header[16]) != chunk.end - block) {
      return DataLoss(file_->path(), ": the block header at offset ", block,
                      " is damaged");
    }
  }
  return OkStatus();
}

StatusOr<std::string> RiegeliReader::ReadData(const Chunk& chunk) const {
  std::string data(chunk.data_size, '\0');
  uint64_t at = AddWithHeaders(chunk.begin, kChunkHeader);
  HR_RETURN_IF_ERROR(ReadBetweenHeaders(&at, absl::MakeSpan(data)));
  if (HashOf(data) != chunk.data_hash) {
    return DataLoss(file_->path(), ": chunk at offset ", chunk.begin,
                    ": the hash of its data does not match");
  }
  return data;
}

Status RiegeliReader::Decode(const Chunk& chunk) {
  const std::string where =
      absl::StrCat(file_->path(), ": chunk at offset ", chunk.begin, ": ");
  if (chunk.type == kTransposed) {
    return Unimplemented(where, "transposed chunks are not read");
  }
  if (chunk.type != kSimple) {
    return DataLoss(where, "a chunk of type ", static_cast<int>(chunk.type),
                    " has no records, this one ", chunk.num_records);
  }
  // Records asked for in order read every chunk once.
  read_ += chunk.data_size;
  if (read_ / kMostReadings > file_->size()) {
    return DataLoss(where, "records of other chunks lie between its own");
  }
  HR_ASSIGN_OR_RETURN(std::string data, ReadData(chunk));
  StringView rest = data, packed_sizes;
  uint64_t sizes_size;
  if (rest.empty()) return DataLoss(where, "its data is empty");
  const char packing = rest[0];
  rest.remove_prefix(1);
  if (!GetVarint64(&rest, &sizes_size) ||
      !GetBytes(&rest, sizes_size, &packed_sizes)) {
    return DataLoss(where, "the sizes of its records are cut");
  }
  HR_ASSIGN_OR_RETURN(const std::string sizes,
                      Unpacked(packed_sizes, packing, where));
  Decoded decoded;
  decoded.begin = chunk.begin;
  HR_ASSIGN_OR_RETURN(decoded.ends, EndsOf(sizes, chunk, where));
  if (packing == kPlain) {
    data.erase(0, data.size() - rest.size());
    decoded.values = std::move(data);
  } else {
    HR_ASSIGN_OR_RETURN(decoded.values, Unpacked(rest, packing, where));
  }
  if (decoded.values.size() != chunk.decoded_size) {
    return DataLoss(where, "its records have ", decoded.values.size(),
                    " bytes, its header says ", chunk.decoded_size);
  }
  decoded_ = std::move(decoded);
  return OkStatus();
}

StatusOr<std::vector<uint64_t>> RiegeliReader::EndsOf(
    StringView sizes, const Chunk& chunk, const std::string& where) {
  std::vector<uint64_t> ends;
  uint64_t end = 0;
  while (!sizes.empty()) {
    uint64_t size;
    if (!GetVarint64(&sizes, &size) || size > chunk.decoded_size - end) break;
    ends.push_back(end += size);
  }
  if (!sizes.empty() || ends.size() != chunk.num_records ||
      end != chunk.decoded_size) {
    return DataLoss(where, "the sizes of its records are damaged");
  }
  return ends;
}

StatusOr<std::string> RiegeliReader::ReadRecord(const Chunk& chunk,
                                                uint64_t index) {
  if (decoded_.ends.empty() || decoded_.begin != chunk.begin) {
    HR_RETURN_IF_ERROR(Decode(chunk));
  }
  if (decoded_.ends.size() == 1) {
    decoded_.ends.clear();
    return std::move(decoded_.values);
  }
  const uint64_t begin = index == 0 ? 0 : decoded_.ends[index - 1];
  return decoded_.values.substr(begin, decoded_.ends[index] - begin);
}

StatusOr<std::string> RiegeliReader::Read(uint64_t place) {
  auto behind = std::upper_bound(
      chunks_.begin(), chunks_.end(), place,
      [](uint64_t at, const Chunk& chunk) { return at < chunk.begin; });
  if (behind == chunks_.begin() ||
      place - (behind - 1)->begin >= (behind - 1)->num_records) {
    return NotFound(file_->path(), ": there is no record at ", place);
  }
  const Chunk& chunk = *(behind - 1);
  return ReadRecord(chunk, place - chunk.begin);
}

StatusOr<std::string> RiegeliReader::ReadLast() {
  if (chunks_.empty()) return NotFound(file_->path(), ": it has no records");
  return ReadRecord(chunks_.back(), chunks_.back().num_records - 1);
}

}  // namespace headrace
