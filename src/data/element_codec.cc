#include "data/element_codec.h"

#include "base/coding.h"
#include "base/numbers/bools.h"
#include "data/elements.h"

namespace headrace {
namespace {

// Windows of windows of windows: no deeper, so that forged bytes end.
constexpr int kMostNesting = 8;

Status AppendElement(const Element& element, std::string* out);

// A dataset that lies in memory, as windows and groups are.
Status AppendDataset(const Variant& v, std::string* out) {
  const auto* dataset = v.get<ElementsDataset>();
  if (dataset == nullptr) {
    return Unimplemented("elements that hold a variant of type ",
                         v.DebugString(), " cannot be written");
  }
  const ElementSpec& spec = dataset->spec();
  PutVarint64(out, spec.types.size());
  for (size_t i = 0; i < spec.types.size(); ++i) {
    PutVarint64(out, static_cast<uint64_t>(spec.types[i]));
    // One more, so that 0 can stand for an unknown rank and an unknown size
    // (-1).
    PutVarint64(out, static_cast<uint64_t>(spec.shapes[i].rank() + 1));
    if (!spec.shapes[i].known_rank()) continue;
    for (int64_t d : spec.shapes[i].dims()) {
      PutVarint64(out, static_cast<uint64_t>(d + 1));
    }
  }
  PutVarint64(out, dataset->elements().size());
  for (const Element& e : dataset->elements()) {
    HR_RETURN_IF_ERROR(AppendElement(e, out));
  }
  return OkStatus();
}

Status AppendElement(const Element& element, std::string* out) {
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
    } else if (t.dtype() == DType::kVariant) {
      for (const Variant& v : t.span<Variant>()) {
        HR_RETURN_IF_ERROR(AppendDataset(v, out));
      }
    } else {
      return Unimplemented("elements with a component of dtype ",
                           DTypeName(t.dtype()), " cannot be written");
    }
  }
  return OkStatus();
}

Status DamagedElement() { return DataLoss("a stored element is damaged"); }

StatusOr<Element> TakeElement(StringView* in, int depth);

StatusOr<Variant> TakeDataset(StringView* in, int depth) {
  ElementSpec spec;
  uint64_t width, type, rank, dim, count;
  // Each component takes a byte at least: a forged count ends here and not in
  // memory.
  if (depth >= kMostNesting || !GetVarint64(in, &width) || width > in->size()) {
    return DamagedElement();
  }
  for (uint64_t i = 0; i < width; ++i) {
    if (!GetVarint64(in, &type) || !GetVarint64(in, &rank) || type > 255 ||
        !DTypeIsValid(static_cast<int>(type)) || rank > Shape::kMaxRank + 1) {
      return DamagedElement();
    }
    Shape shape = rank == 0 ? Shape::UnknownRank() : Shape();
    for (uint64_t k = 1; k < rank; ++k) {
      if (!GetVarint64(in, &dim) || dim > INT64_MAX) return DamagedElement();
      shape.AddDim(static_cast<int64_t>(dim) - 1);
    }
    spec.types.push_back(static_cast<DType>(type));
    spec.shapes.push_back(std::move(shape));
  }
  if (!GetVarint64(in, &count) || count > in->size()) return DamagedElement();
  std::vector<Element> elements;
  for (uint64_t i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(Element e, TakeElement(in, depth + 1));
    if (e.size() != width) return DamagedElement();
    for (uint64_t k = 0; k < width; ++k) {
      if (e[k].dtype() != spec.types[k]) return DamagedElement();
    }
    elements.push_back(std::move(e));
  }
  return Variant(
      MakeNested<const ElementsDataset>(std::move(spec), std::move(elements)));
}

StatusOr<Tensor> DecodeComponent(StringView* in, int depth) {
  uint64_t dtype, rank;
  if (!GetVarint64(in, &dtype) || !GetVarint64(in, &rank) || dtype > 255 ||
      !DTypeIsValid(static_cast<int>(dtype)) || rank > Shape::kMaxRank) {
    return DamagedElement();
  }
  std::vector<int64_t> dims;
  for (uint64_t i = 0; i < rank; ++i) {
    uint64_t d;
    if (!GetVarint64(in, &d) || d > INT64_MAX) return DamagedElement();
    dims.push_back(static_cast<int64_t>(d));
  }
  HR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  const DType type = static_cast<DType>(dtype);
  const uint64_t n = static_cast<uint64_t>(shape.num_elements());
  // No more elements than there are bytes for: a forged count allocates
  // nothing.
  const uint64_t least = IsPlain(type) ? DTypeSize(type) : 1;
  if (least == 0 || n > in->size() / least) return DamagedElement();
  HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(type, shape));
  StringView bytes;
  if (IsPlain(type)) {
    if (!GetBytes(in, t.bytes(), &bytes)) return DamagedElement();
    if (!bytes.empty()) std::memcpy(t.raw(), bytes.data(), bytes.size());
    // A bool that is neither 0 nor 1 is undefined to the compiler; forged bytes
    // may hold any.
    if (type == DType::kBool) MakeBools(t.raw(), bytes.size());
    return t;
  }
  if (type == DType::kVariant) {
    for (Variant& v : t.span<Variant>()) {
      HR_ASSIGN_OR_RETURN(v, TakeDataset(in, depth));
    }
    return t;
  }
  if (type != DType::kString) return DamagedElement();
  for (std::string& s : t.span<std::string>()) {
    uint64_t size;
    if (!GetVarint64(in, &size) || !GetBytes(in, size, &bytes)) {
      return DamagedElement();
    }
    s.assign(bytes.data(), bytes.size());
  }
  return t;
}

StatusOr<Element> TakeElement(StringView* in, int depth) {
  uint64_t width;
  if (!GetVarint64(in, &width) || width > in->size()) return DamagedElement();
  Element element;
  for (uint64_t i = 0; i < width; ++i) {
    HR_ASSIGN_OR_RETURN(Tensor t, DecodeComponent(in, depth));
    element.push_back(std::move(t));
  }
  return element;
}

}  // namespace

Status EncodeElement(const Element& element, std::string* out) {
  out->clear();
  return AppendElement(element, out);
}

StatusOr<Element> DecodeElement(StringView bytes) {
  HR_ASSIGN_OR_RETURN(Element element, TakeElement(&bytes, 0));
  if (!bytes.empty()) return DamagedElement();
  return element;
}

}  // namespace headrace
