#include "c/attr_reads.h"

#include <cstring>
#include <memory>

#include "c/tensor.h"

namespace headrace::capi {
namespace {

int64_t RankOf(const Shape& s) { return s.known_rank() ? s.rank() : -1; }

struct Sizes {
  TF_AttrMetadata* m;
  void operator()(const auto&) const {}
  void operator()(const std::string& v) const { m->total_size = v.size(); }
  void operator()(const Shape& v) const { m->total_size = RankOf(v); }
  template <typename T>
  void operator()(const std::vector<T>& v) const {
    m->is_list = 1;
    m->list_size = static_cast<int64_t>(v.size());
    if constexpr (std::is_same_v<T, std::string>) {
      m->total_size = 0;
      for (const std::string& s : v) m->total_size += s.size();
    } else if constexpr (std::is_same_v<T, Shape>) {
      m->total_size = 0;
      for (const Shape& s : v) m->total_size += std::max<int64_t>(s.rank(), 0);
    }
  }
};

}  // namespace

TF_AttrMetadata MetadataOf(const AttrValue& value) {
  TF_AttrMetadata m{0, -1, TypeOfKind(value.kind()), -1};
  std::visit(Sizes{&m}, static_cast<const AttrValue::variant&>(value));
  return m;
}

Status CopyStrings(const std::vector<std::string>& from, void** values,
                   size_t* lengths, int room, void* storage, size_t size) {
  const int count = std::min<int>(std::max(room, 0), from.size());
  if (count > 0) {
    HR_RETURN_IF_ERROR(NotNull(values, "values"));
    HR_RETURN_IF_ERROR(NotNull(lengths, "lengths"));
  }
  char* to = static_cast<char*>(storage);
  for (int i = 0; i < count; ++i) {
    const std::string& s = from[i];
    if (s.size() > size || (to == nullptr && !s.empty())) {
      return InvalidArgument(
          "Not enough storage to hold the requested list "
          "of strings");
    }
    values[i] = to;
    lengths[i] = s.size();
    if (!s.empty()) std::memcpy(to, s.data(), s.size());
    size -= s.size();
    if (to) to += s.size();
  }
  return OkStatus();
}

Status CopyTensors(const std::vector<Tensor>& from, TF_Tensor** values,
                   int room) {
  const int count = std::min<int>(std::max(room, 0), from.size());
  if (count > 0) HR_RETURN_IF_ERROR(NotNull(values, "values"));
  std::vector<std::unique_ptr<TF_Tensor>> made;
  for (int i = 0; i < count; ++i) {
    HR_ASSIGN_OR_RETURN(TF_Tensor * t, FromTensor(from[i]));
    made.emplace_back(t);
  }
  for (int i = 0; i < count; ++i) values[i] = made[i].release();
  return OkStatus();
}

}  // namespace headrace::capi
