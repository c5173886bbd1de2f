#include "serving/json/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <type_traits>

#include "serving/json/json_float.h"

namespace headrace::serving {
namespace {

Status WrongType(StringView value, DType dtype) {
  return InvalidArgument("JSON Value: ", JsonExcerpt(value),
                         " Type: ", JsonKindName(JsonKindOf(value)),
                         " is not of expected type: ", DTypeName(dtype));
}

// Reads the value that `at` stands at, and goes past it; false, and stays,
// where it is of another type.
template <typename T>
bool ReadNumber(JsonReader& at, T* out) {
  if (at.kind() != JsonKind::kNumber) return false;
  if constexpr (std::is_same_v<T, float>) {
    if (const char* past = FastFloat(at.here(), at.end(), out)) {
      at.MoveTo(past);
      return true;
    }
  }
  auto read = std::from_chars(at.here(), at.end(), *out);
  if constexpr (std::is_floating_point_v<T>) {
    if (read.ec == std::errc::result_out_of_range) {
      // Too large for a float, which is infinite then, or next to nothing.
      double wide = 0;
      read = std::from_chars(at.here(), at.end(), wide);
      if (read.ec != std::errc()) wide = 0;
      *out = static_cast<T>(wide);
    }
  } else {
    if (read.ec != std::errc()) {
      // from_chars knows no minus zero without a sign.
      if (*at.here() != '-' || std::is_signed_v<T>) return false;
      int64_t value = 0;
      read = std::from_chars(at.here(), at.end(), value);
      if (read.ec != std::errc() || value != 0) return false;
      *out = 0;
    }
    const char* p = read.ptr;
    if (p != at.end() && (*p == '.' || *p == 'e' || *p == 'E')) return false;
  }
  at.MoveTo(read.ptr);
  return true;
}

bool ReadBool(JsonReader& at, bool* out) {
  const JsonKind kind = at.kind();
  if (kind != JsonKind::kTrue && kind != JsonKind::kFalse) return false;
  *out = kind == JsonKind::kTrue;
  at.Skip();
  return true;
}

Status ReadString(JsonReader& at, std::string* out) {
  const StringView value = at.Skip();
  if (JsonKindOf(value) == JsonKind::kString) {
    *out = JsonString(value);
    return OkStatus();
  }
  if (!IsBase64Object(JsonReader(value)))
    return WrongType(value, DType::kString);
  HR_ASSIGN_OR_RETURN(*out, Base64Bytes(value));
  return OkStatus();
}

template <typename T>
Status ReadElement(JsonReader& at, T* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    return ReadString(at, out);
  } else {
    bool read;
    if constexpr (std::is_same_v<T, bool>) {
      read = ReadBool(at, out);
    } else {
      read = ReadNumber(at, out);
    }
    return read ? OkStatus() : WrongType(at.Skip(), DTypeOf<T>);
  }
}

// Behind a number of a list: reads those that follow where they are known or
// simple, at most so many, and gives how many there were.
int64_t ReadFloats(JsonReader& at, int64_t most, float* out) {
  int64_t count = 0;
  const char* known = at.NextFloats();
  while (count < most && at.end() - at.here() > 2) {
    if (at.here() == known) {
      const auto floats = at.FloatsAhead();
      const auto size = static_cast<int64_t>(floats.size());
      if (size > most - count) break;  // the list is too long
      std::copy(floats.begin(), floats.end(), out + count);
      count += size;
      at.PassFloats();
      known = at.NextFloats();
      continue;
    }
    const char* number = at.here();
    if (*number++ != ',') break;
    if (*number == ' ') [[likely]]
      ++number;
    number = FastFloat(number, at.end(), out + count);
    if (number == nullptr) break;
    ++count;
    at.MoveTo(number);
  }
  return count;
}

Status WrongLevel(StringView value, int64_t level, size_t rank) {
  return InvalidArgument("JSON Value: ", JsonExcerpt(value),
                         " found at incorrect level: ", level,
                         " in the JSON DOM. Expected at level: ", rank);
}

// Along the first elements of lists. InvalidArgument where there are more than
// a shape can have.
Status ShapeOfFirst(JsonReader at, std::vector<int64_t>* dims) {
  const JsonReader start = at;
  int64_t depth = 0;
  bool empty = false;
  while (!empty && at.kind() == JsonKind::kArray) {
    ++depth;
    if (depth > Shape::kMaxRank) {
      return InvalidArgument(
          "JSON Value: ", JsonExcerpt(JsonReader(start).Skip()),
          " has more than ", Shape::kMaxRank, " levels of lists");
    }
    empty = !at.Enter();
  }
  dims->assign(depth, 0);
  if (!empty && depth > 0) at.Skip();
  for (int64_t level = depth - 1 - (empty ? 1 : 0); level >= 0; --level) {
    int64_t count = level == depth - 1 ? at.NumbersAhead() : 0;
    for (++count; at.Next(); at.Skip()) ++count;
    (*dims)[level] = count;
  }
  return OkStatus();
}

using JsonTypes = TypeList<float, double, int32_t, int64_t, int8_t, int16_t,
                           uint8_t, uint32_t, uint64_t, bool, std::string>;

}  // namespace

Status TensorRows::Start(const JsonReader& first) {
  started_ = true;
  if (!DispatchDType(dtype_, JsonTypes(), [](auto) {})) {
    return Unimplemented(
        "Conversion of JSON Value: ", JsonExcerpt(JsonReader(first).Skip()),
        " to type: ", DTypeName(dtype_));
  }
  HR_RETURN_IF_ERROR(ShapeOfFirst(first, &row_));
  Shape shape(absl::MakeConstSpan(row_));
  if (rows_ != kOneValue) {
    if (row_.size() == Shape::kMaxRank) {
      return InvalidArgument("a list has more than ", Shape::kMaxRank - 1,
                             " levels of lists in it");
    }
    shape.InsertDim(0, rows_);
  }
  int64_t elements;
  impossible_ =
      !CountElements(shape, &elements) || elements > first.end() - first.here();
  if (impossible_) return OkStatus();
  HR_ASSIGN_OR_RETURN(tensor_, Tensor::Allocate(dtype_, shape));
  return OkStatus();
}

Status TensorRows::Add(JsonReader& at) {
  if (!started_) HR_RETURN_IF_ERROR(Start(at));
  Status s;
  DispatchDType(dtype_, JsonTypes(),
                [&](auto tag) { s = Fill<typename decltype(tag)::type>(at); });
  return s;
}

// `at` stands at a list: whether there should be one, and of some length.
Status TensorRows::CheckList(JsonReader& at) {
  const size_t level = counts_.size();
  if (level >= row_.size()) {
    return InvalidArgument("Encountered list at unexpected level: ", level,
                           " expected < ", row_.size());
  }
  if (at.Enter()) {
    counts_.push_back(1);
    // One element is too many.
    return row_[level] == 0 ? WrongSize(at) : OkStatus();
  }
  if (row_[level] == 0) return OkStatus();
  counts_.push_back(0);
  return InvalidArgument("Encountered list at unexpected size: ", 0,
                         " at level: ", level, " expected size: ", row_[level]);
}

// `at` stands at an element which is one too many; goes to the list's end.
Status TensorRows::WrongSize(JsonReader& at) {
  int64_t count = counts_.back();
  for (at.Skip(); at.Next(); at.Skip()) ++count;
  const size_t level = counts_.size() - 1;
  return InvalidArgument("Encountered list at unexpected size: ", count,
                         " at level: ", level, " expected size: ", row_[level]);
}

template <typename T>
Status TensorRows::Fill(JsonReader& at) {
  counts_.clear();
  const size_t rank = row_.size();
  T unused{};
  for (;;) {
    const size_t depth = counts_.size();
    if (at.kind() == JsonKind::kArray) {
      HR_RETURN_IF_ERROR(CheckList(at));
      if (counts_.size() > depth) continue;  // at its first element
    } else if (depth != rank) {
      return WrongLevel(at.Skip(), depth, rank);
    } else {
      T* out = impossible_ ? &unused : tensor_.data<T>() + filled_;
      HR_RETURN_IF_ERROR(ReadElement(at, out));
      ++filled_;
      if constexpr (std::is_same_v<T, float>) {
        if (depth > 0 && !impossible_) {
          const int64_t left = row_[depth - 1] - counts_.back();
          const int64_t count = ReadFloats(at, left, out + 1);
          counts_.back() += count;
          filled_ += count;
        }
      }
    }
    // Past a value: on to the next one, which may be of a list further out.
    bool next = false;
    while (!next && !counts_.empty()) {
      const int64_t size = row_[counts_.size() - 1];
      next = at.Next();
      if (!next && counts_.back() != size) {
        return InvalidArgument(
            "Encountered list at unexpected size: ", counts_.back(),
            " at level: ", counts_.size() - 1, " expected size: ", size);
      }
      if (!next) {
        counts_.pop_back();
      } else if (++counts_.back() > size) {
        return WrongSize(at);
      }
    }
    if (!next) return OkStatus();
  }
}

StatusOr<Tensor> ReadTensor(JsonReader at, DType dtype) {
  TensorRows one(dtype);
  HR_RETURN_IF_ERROR(one.Add(at));
  return one.Finish();
}

}  // namespace headrace::serving
