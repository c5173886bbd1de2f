#include "command/text/json_tensor.h"

#include "absl/strings/escaping.h"
#include "base/utf8.h"

namespace headrace::command {
namespace {

bool IsUtf8(StringView text) {
  for (size_t at = 0; at < text.size();) {
    if (Utf8Next(text, &at) < 0) return false;
  }
  return true;
}

void WriteBytes(const std::string& bytes, JsonWriter& json) {
  if (IsUtf8(bytes)) {
    json.Text(bytes);
    return;
  }
  json.BeginObject();
  json.Member("b64", absl::Base64Escape(bytes));
  json.End();
}

template <typename T>
void WriteNumber(T v, JsonWriter& json) {
  if constexpr (std::is_same_v<T, double>) {
    json.Number(v);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    json.Unsigned(v);
  } else if constexpr (std::is_integral_v<T>) {
    json.Int(v);
  } else if constexpr (std::is_same_v<T, complex64> ||
                       std::is_same_v<T, complex128>) {
    json.BeginList();
    WriteNumber(v.real(), json);
    WriteNumber(v.imag(), json);
    json.End();
  } else {
    json.Single(static_cast<float>(v));
  }
}

void WriteElement(const Tensor& t, int64_t i, JsonWriter& json) {
  using SmallFloats = TypeList<float8_e5m2, float8_e4m3fn, float8_e4m3fnuz,
                               float8_e4m3b11fnuz, float8_e5m2fnuz>;
  const auto number = [&](auto tag) {
    using T = typename decltype(tag)::type;
    WriteNumber(t.data<T>()[i], json);
  };
  const auto stored = [&](auto tag) {
    using T = typename decltype(tag)::type;
    json.Int(t.data<T>()[i].value);
  };
  const auto small = [&](auto tag) {
    using T = typename decltype(tag)::type;
    json.Int(static_cast<int>(t.data<T>()[i]));
  };
  if (t.dtype() == DType::kString) {
    WriteBytes(t.data<std::string>()[i], json);
  } else if (t.dtype() == DType::kBool) {
    json.Bool(t.data<bool>()[i]);
  } else if (!DispatchDType(t.dtype(), NumberTypes{}, number) &&
             !DispatchDType(t.dtype(), SmallFloats{}, number) &&
             !DispatchDType(t.dtype(),
                            TypeList<qint8, qint16, qint32, quint8, quint16>{},
                            stored) &&
             !DispatchDType(t.dtype(), TypeList<int4, uint4, int2, uint2>{},
                            small)) {
    json.Null();
  }
}

void WriteLevel(const Tensor& t, int dim, int64_t* next, JsonWriter& json) {
  if (dim == t.rank()) {
    WriteElement(t, (*next)++, json);
    return;
  }
  json.BeginList();
  for (int64_t i = 0; i < t.dim(dim); ++i) WriteLevel(t, dim + 1, next, json);
  json.End();
}

// A file of a hundred bytes may say any sizes before one of 0: as many lists as
// these make are more than anybody reads.
constexpr double kMostEmptyLists = 1e6;

// How many lists stand for a tensor without elements.
double EmptyListsOf(const Tensor& t) {
  double lists = 1;
  for (int dim = 0; t.dim(dim) != 0; ++dim)
    lists *= static_cast<double>(t.dim(dim));
  return lists;
}

}  // namespace

void WriteJson(const Tensor& tensor, JsonWriter& json) {
  if (tensor.num_elements() == 0 && EmptyListsOf(tensor) > kMostEmptyLists) {
    json.BeginList();
    json.End();
    return;
  }
  int64_t next = 0;
  WriteLevel(tensor, 0, &next, json);
}

}  // namespace headrace::command
