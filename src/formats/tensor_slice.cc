#include "formats/tensor_slice.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/ordered_code.h"
#include "tensorflow/core/framework/tensor_slice.pb.h"

namespace headrace {
namespace {

// Upstream's limit of dimensions.
constexpr size_t kMostDims = 254;

Status CheckExtent(const TensorSlice::Extent& e) {
  if (e.length == TensorSlice::kWhole && e.start == 0) return OkStatus();
  if (e.start >= 0 && e.length >= 0 && e.start <= INT64_MAX - e.length) {
    return OkStatus();
  }
  return InvalidArgument("slice extent with start ", e.start, " and length ",
                         e.length);
}

}  // namespace

TensorSlice TensorSlice::Whole(int rank) {
  TensorSlice slice;
  slice.extents.resize(rank);
  return slice;
}

StatusOr<TensorSlice> TensorSlice::Parse(StringView text) {
  TensorSlice slice;
  if (text.empty()) return slice;
  for (StringView part : absl::StrSplit(text, ':')) {
    Extent e;
    if (part != "-") {
      const size_t comma = part.find(',');
      if (comma == StringView::npos ||
          !absl::SimpleAtoi(part.substr(0, comma), &e.start) ||
          !absl::SimpleAtoi(part.substr(comma + 1), &e.length) ||
          e.length <= 0 || !CheckExtent(e).ok()) {
        return InvalidArgument(
            "Expected a pair of start and length or '-', got '", part,
            "' in slice '", text, "'");
      }
    }
    slice.extents.push_back(e);
  }
  if (slice.extents.size() > kMostDims) {
    return InvalidArgument("a slice of ", slice.extents.size(), " dimensions");
  }
  return slice;
}

std::string TensorSlice::ToString() const {
  std::string out;
  for (const Extent& e : extents) {
    if (!out.empty()) out += ':';
    if (e.length == kWhole) {
      out += '-';
    } else {
      absl::StrAppend(&out, e.start, ",", e.length);
    }
  }
  return out;
}

StatusOr<TensorSlice> TensorSlice::FromProto(
    const tensorflow::TensorSliceProto& proto) {
  if (proto.extent_size() > kMostDims) {
    return InvalidArgument("a slice of ", proto.extent_size(), " dimensions");
  }
  TensorSlice slice;
  for (const auto& e : proto.extent()) {
    Extent extent;
    extent.start = e.start();
    if (e.has_length()) {
      extent.length = e.length();
      if (extent.length < 0) {
        return InvalidArgument("slice extent with length ", extent.length);
      }
    }
    HR_RETURN_IF_ERROR(CheckExtent(extent));
    slice.extents.push_back(extent);
  }
  return slice;
}

void TensorSlice::ToProto(tensorflow::TensorSliceProto* proto) const {
  proto->Clear();
  for (const Extent& e : extents) {
    auto* extent = proto->add_extent();
    if (e.length == kWhole) continue;
    extent->set_start(e.start);
    extent->set_length(e.length);
  }
}

StatusOr<TensorSlice> TensorSlice::Resolve(
    absl::Span<const int64_t> dims) const {
  if (dims.size() != extents.size()) {
    return InvalidArgument("slice ", ToString(), " has ", extents.size(),
                           " dimensions, the tensor ", dims.size());
  }
  TensorSlice out = *this;
  for (size_t d = 0; d < dims.size(); ++d) {
    Extent& e = out.extents[d];
    HR_RETURN_IF_ERROR(CheckExtent(e));
    if (e.length == kWhole) e.length = dims[d];
    if (e.length < 0 || e.start > dims[d] - e.length) {
      return InvalidArgument("slice ", ToString(), " is not inside dimension ",
                             d, " of size ", dims[d]);
    }
  }
  return out;
}

StatusOr<int64_t> CountElements(absl::Span<const int64_t> dims) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument("a dimension of size ", d);
    if (d == 0) empty = true;
    if (!empty && __builtin_mul_overflow(count, d, &count)) overflow = true;
  }
  if (empty) return 0;
  if (overflow) return InvalidArgument("a tensor of over 2^63 elements");
  return count;
}

std::vector<int64_t> SliceDims(const TensorSlice& resolved) {
  std::vector<int64_t> dims;
  for (const auto& e : resolved.extents) dims.push_back(e.length);
  return dims;
}

StatusOr<ShapeAndSlice> ParseShapeAndSlice(StringView text) {
  ShapeAndSlice out;
  if (text.empty()) return out;
  out.whole = false;
  const std::vector<StringView> parts = absl::StrSplit(text, ' ');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    int64_t dim;
    if (!absl::SimpleAtoi(parts[i], &dim) || dim < 0) {
      return InvalidArgument("Non numerical dimension in shape_and_slice: ",
                             text);
    }
    out.dims.push_back(dim);
  }
  HR_RETURN_IF_ERROR(CountElements(out.dims).status());
  HR_ASSIGN_OR_RETURN(const TensorSlice slice,
                      TensorSlice::Parse(parts.back()));
  HR_ASSIGN_OR_RETURN(out.slice, slice.Resolve(out.dims));
  return out;
}

std::string EncodeSliceKey(StringView name, const TensorSlice& slice) {
  std::string key;
  PutOrderedNumber(&key, 0);
  PutOrderedString(&key, name);
  PutOrderedNumber(&key, slice.extents.size());
  for (const auto& e : slice.extents) {
    PutOrderedSigned(&key, e.start);
    PutOrderedSigned(&key, e.length);
  }
  return key;
}

Status DecodeSliceKey(StringView key, std::string* name, TensorSlice* slice) {
  const auto bad = [] { return DataLoss("malformed key of a tensor slice"); };
  uint64_t zero, rank;
  if (!GetOrderedNumber(&key, &zero) || zero != 0 ||
      !GetOrderedString(&key, name) || !GetOrderedNumber(&key, &rank) ||
      rank > kMostDims) {
    return bad();
  }
  slice->extents.clear();
  for (uint64_t d = 0; d < rank; ++d) {
    TensorSlice::Extent e;
    if (!GetOrderedSigned(&key, &e.start) ||
        !GetOrderedSigned(&key, &e.length) || !CheckExtent(e).ok()) {
      return bad();
    }
    slice->extents.push_back(e);
  }
  return key.empty() ? OkStatus() : bad();
}

int64_t ForEachCommonRun(
    const TensorSlice& source, const TensorSlice& target,
    absl::FunctionRef<void(int64_t, int64_t, int64_t)> run) {
  const int rank = static_cast<int>(source.extents.size());
  if (rank == 0) return run(0, 0, 1), 1;
  // The common box; the first element's index in each; each box's strides.
  std::vector<int64_t> length(rank), from_stride(rank), to_stride(rank);
  int64_t from = 0, to = 0, s = 1, t = 1, total = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto &a = source.extents[d], &b = target.extents[d];
    const int64_t begin = std::max(a.start, b.start);
    length[d] = std::min(a.start + a.length, b.start + b.length) - begin;
    if (length[d] <= 0) return 0;
    total *= length[d];
    from_stride[d] = s;
    to_stride[d] = t;
    from += (begin - a.start) * s;
    to += (begin - b.start) * t;
    s *= a.length;
    t *= b.length;
  }
  // Inner dimensions that both boxes cover fully make longer runs.
  int inner = rank - 1;
  int64_t count = length[inner];
  while (inner > 0 && length[inner] == source.extents[inner].length &&
         length[inner] == target.extents[inner].length) {
    count *= length[--inner];
  }
  std::vector<int64_t> at(inner, 0);
  for (;;) {
    run(from, to, count);
    int d = inner - 1;
    for (; d >= 0; --d) {
      from += from_stride[d];
      to += to_stride[d];
      if (++at[d] < length[d]) break;
      from -= at[d] * from_stride[d];
      to -= at[d] * to_stride[d];
      at[d] = 0;
    }
    if (d < 0) return total;
  }
}

}  // namespace headrace
