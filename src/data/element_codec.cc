#include "data/element_codec.h"

#include "base/coding.h"

namespace headrace {

Status EncodeElement(const Element& element, std::string* out) {
  out->clear();
  PutVarint64(out, element.size());
  for (const Tensor& t : element) {
    PutVarint64(out, static_cast<uint64_t>(t.dtype()));
    PutVarint64(out, static_cast<uint64_t>(t.rank()));
    for (int64_t d : t.shape().dims()) {
      PutVarint64(out, static_cast<uint64_t>(d));
    }
    if (IsPlain(t.dtype())) {
      out->append(static_cast<const char*>(t.raw()), t.bytes());
    } else if (t.dtype() == DType::kString) {
      for (const std::string& s : t.span<std::string>()) {
        PutVarint64(out, s.size());
        out->append(s);
      }
    } else {
      return Unimplemented("elements with a component of dtype ",
                           DTypeName(t.dtype()), " cannot be written");
    }
  }
  return OkStatus();
}

namespace {

Status Damaged() { return DataLoss("a stored element is damaged"); }

StatusOr<Tensor> DecodeComponent(StringView* in) {
  uint64_t dtype, rank;
  if (!GetVarint64(in, &dtype) || !GetVarint64(in, &rank) || dtype > 255 ||
      !DTypeIsValid(static_cast<int>(dtype)) || rank > Shape::kMaxRank) {
    return Damaged();
  }
  std::vector<int64_t> dims;
  for (uint64_t i = 0; i < rank; ++i) {
    uint64_t d;
    if (!GetVarint64(in, &d) || d > INT64_MAX) return Damaged();
    dims.push_back(static_cast<int64_t>(d));
  }
  HR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  const DType type = static_cast<DType>(dtype);
  const uint64_t n = static_cast<uint64_t>(shape.num_elements());
  // No more elements than there are bytes for: a forged count allocates
  // nothing.
  const uint64_t least = IsPlain(type) ? DTypeSize(type) : 1;
  if (least == 0 || n > in->size() / least) return Damaged();
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(type, shape));
  StringView bytes;
  if (IsPlain(type)) {
    if (!GetBytes(in, t.bytes(), &bytes)) return Damaged();
    if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), bytes.size());
    return t;
  }
  if (type != DType::kString) return Damaged();
  for (std::string& s : t.span<std::string>()) {
    uint64_t size;
    if (!GetVarint64(in, &size) || !GetBytes(in, size, &bytes)) {
      return Damaged();
    }
    s.assign(bytes.data(), bytes.size());
  }
  return t;
}

}  // namespace

StatusOr<Element> DecodeElement(StringView bytes) {
  uint64_t width;
  if (!GetVarint64(&bytes, &width) || width > bytes.size()) return Damaged();
  Element element;
  for (uint64_t i = 0; i < width; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, DecodeComponent(&bytes));
    element.push_back(std::move(t));
  }
  if (!bytes.empty()) return Damaged();
  return element;
}

}  // namespace headrace
