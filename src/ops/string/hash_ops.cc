// StringToHashBucket in three forms, and Fingerprint.
#include <cstring>

#include "ops/string/hash.h"
#include "ops/string/string_map.h"

namespace headrace {
namespace {

// The bucket of a hash, which is unsigned.
int64_t Bucket(uint64_t hash, int64_t buckets) {
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

template <uint64_t (*kHash)(absl::string_view)>
Status ToBucket(KernelContext& c) {
  const int64_t buckets = c.op().int_attr("num_buckets");
  MapStrings<int64_t>(
      c, [=](const std::string& s) { return Bucket(kHash(s), buckets); });
  return OkStatus();
}

HR_OP(StringToHashBucketFast)
    .Input("input: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Doc("A bucket for each string, by its fingerprint.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<ToBucket<Fingerprint64>>);

HR_OP(StringToHashBucket)
    .Input("string_tensor: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Doc("A bucket for each string, by upstream's older hash.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<ToBucket<Hash64>>);

Status ToBucketStrong(KernelContext& c) {
  const auto& key = c.op().attr<std::vector<int64_t>>("key");
  if (key.size() != 2) {
    return InvalidArgument("Key must have 2 elements");
  }
  const uint64_t words[2] = {static_cast<uint64_t>(key[0]),
                             static_cast<uint64_t>(key[1])};
  const int64_t buckets = c.op().int_attr("num_buckets");
  MapStrings<int64_t>(c, [&](const std::string& s) {
    return Bucket(StrongHash64(words, s), buckets);
  });
  return OkStatus();
}

HR_OP(StringToHashBucketStrong)
    .Input("input: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Attr("key: list(int)")
    .Doc("A bucket for each string, by a hash under a key.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<ToBucketStrong>);

Status FingerprintShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRankAtLeast(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  if (c.input(0).known_rank()) c.set_output(0, Shape{c.input(0)[0], 8});
  return OkStatus();
}

// One fingerprint a row. A row of several strings is hashed as the row of
// their fingerprints.
Status Fingerprint(KernelContext& c) {
  if (c.input(1).scalar<std::string>() != "farmhash64") {
    return InvalidArgument("Unsupported fingerprint method: ",
                           c.input(1).scalar<std::string>());
  }
  const Tensor& in = c.input(0);
  const int64_t rows = in.dim(0);
  const int64_t row = in.shape().Product(1, in.rank());
  const bool strings = in.dtype() == DType::kString;
  if (!strings && !IsPlain(in.dtype())) {
    return InvalidArgument("Type not supported");
  }
  std::vector<uint64_t> inner(strings ? row : 0);
  for (int64_t r = 0; r < rows; ++r) {
    uint64_t hash;
    if (strings) {
      const std::string* s = in.data<std::string>() + r * row;
      for (int64_t k = 0; k < row; ++k) inner[k] = Fingerprint64(s[k]);
      hash = row == 1 ? inner[0]
                      : Fingerprint64({reinterpret_cast<char*>(inner.data()),
                                       inner.size() * 8});
    } else {
      const size_t bytes = row * DTypeSize(in.dtype());
      hash = Fingerprint64(
          {static_cast<const char*>(in.raw()) + r * bytes, bytes});
    }
    std::memcpy(c.out<uint8_t>(0) + r * 8, &hash, 8);
  }
  return OkStatus();
}

HR_OP(Fingerprint)
    .Input("data: T")
    .Input("method: string")
    .Output("fingerprint: uint8")
    .Attr("T: type")
    .Doc("Eight bytes for each row of a tensor that stand for its content.")
    .Shape(FingerprintShape)
    .Cpu(Compute<Fingerprint>);

}  // namespace
}  // namespace headrace
