// DecodeCompressed: strings from zlib or gzip.
#include "formats/compression.h"
#include "ops/string/string_map.h"

namespace headrace {
namespace {

// A string as a file that a ByteSource reads.
class TextFile : public RandomAccessFile {
 public:
  explicit TextFile(StringView text) : text_(text) {}
  StatusOr<size_t> ReadSome(uint64_t offset,
                            absl::Span<char> out) const override {
    if (offset >= text_.size()) return size_t{0};
    const StringView part = text_.substr(offset, out.size());
    std::copy(part.begin(), part.end(), out.begin());
    return part.size();
  }
  uint64_t size() const override { return text_.size(); }
  const std::string& path() const override { return path_; }

 private:
  const StringView text_;
  const std::string path_ = "DecodeCompressed's input";
};

// Packed bytes may unpack to a thousand times as many; 2 GiB, what a proto can
// hold, bound what is taken.
constexpr size_t kMost = size_t{1} << 31;

Status Decode(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const Compression compression,
                      ParseCompression(c.op().string_attr("compression_type")));
  return MapStringsOrFail<std::string>(
      c, [&](StringView packed, std::string* out) -> Status {
        const TextFile file(packed);
        const auto source = OpenByteSource(&file, compression);
        char room[16384];
        for (;;) {
          HR_ASSIGN_OR_RETURN(const size_t n, source->Read(room));
          out->append(room, n);
          // Read gives fewer bytes than asked at the end only.
          if (n < sizeof(room)) return OkStatus();
          if (out->size() > kMost) {
            return ResourceExhausted("a string unpacks to over ", kMost,
                                     " bytes");
          }
        }
      });
}

StatusOr<std::unique_ptr<Kernel>> BindDecode(const ResolvedOp& op) {
  const std::string& type = op.string_attr("compression_type");
  if (!type.empty() && type != "ZLIB" && type != "GZIP") {
    return InvalidArgument(
        "Only ZLIB, GZIP or NONE are supported "
        "compressions, got ",
        type);
  }
  return MakeKernel(Decode);
}

HR_OP(DecodeCompressed)
    .Input("bytes: string")
    .Output("output: string")
    .Attr("compression_type: string = ''")
    .Doc("Strings unpacked.")
    .Shape(UnchangedShape)
    .Cpu(BindDecode);

}  // namespace
}  // namespace headrace
