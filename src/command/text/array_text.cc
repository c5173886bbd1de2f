#include "command/text/array_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "command/output.h"

namespace headrace::command {
namespace {

// NumPy's print options.
constexpr int64_t kThreshold = 1000;  // elements, above which some are left out
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 75;
constexpr int kPrecision = 8;

using Texts = std::vector<std::string>;

// The shortest digits that name the number, at most kPrecision behind the
// point: "12.", "0.1", and with an exponent "1.e-05".
template <typename T>
std::string Digits(T value, bool with_exponent) {
  char
      room[400];  // the longest double in plain digits has 309 before the point
  const auto format =
      with_exponent ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(room,
                   std::to_chars(room, room + sizeof room, value, format).ptr);
  size_t e = std::min(text.find('e'), text.size());
  const size_t point = text.find('.');
  if (point != std::string::npos && e - point - 1 > kPrecision) {
    text =
        with_exponent
            ? absl::StrFormat("%.*e", kPrecision, static_cast<double>(value))
            : absl::StrFormat("%.*f", kPrecision, static_cast<double>(value));
    e = std::min(text.find('e'), text.size());
    size_t end = e;
    while (text[end - 1] == '0') --end;
    text.erase(end, e - end);
  } else if (point == std::string::npos) {
    text.insert(e, ".");
  }
  return text;
}

struct Cut {
  std::string before, behind, exponent;  // "12" "5" "e+01"
};
Cut CutNumber(const std::string& text) {
  const size_t point = text.find('.');
  const size_t e = std::min(text.find('e'), text.size());
  return {text.substr(0, point), text.substr(point + 1, e - point - 1),
          text.substr(e)};
}

template <typename T>
std::string NotFinite(T v) {
  return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
}

// Floats under each other: points in one column.
template <typename T>
Texts FloatTexts(const std::vector<T>& values, bool plus = false) {
  T most = 0, least = std::numeric_limits<T>::infinity();
  for (const T v : values) {
    if (!std::isfinite(v) || v == 0) continue;
    most = std::max(most, std::abs(v));
    least = std::min(least, std::abs(v));
  }
  const bool exponent =
      most > 0 && (most >= 1e8 || least < static_cast<T>(1e-4) ||
                   static_cast<double>(most) / least > 1000.);
  std::vector<Cut> cuts(values.size());
  size_t left = 0, right = 0, tail = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    cuts[i] = CutNumber(Digits(values[i], exponent));
    if (plus && !std::signbit(values[i])) cuts[i].before.insert(0, "+");
    left = std::max(left, cuts[i].before.size());
    right = std::max(right, cuts[i].behind.size());
    tail = std::max(tail, cuts[i].exponent.size());
  }
  for (const T v : values) {
    if (std::isfinite(v)) continue;
    const size_t width = NotFinite(v).size() + (plus && !(v < 0) ? 1 : 0);
    const size_t behind = right + tail + 1;
    if (width > behind) left = std::max(left, width - behind);
  }
  Texts texts;
  for (size_t i = 0; i < values.size(); ++i) {
    Cut& c = cuts[i];
    if (!std::isfinite(values[i])) {
      std::string text = NotFinite(values[i]);
      if (plus && !(values[i] < 0)) text.insert(0, "+");
      const size_t width = left + right + tail + 1;
      texts.push_back(std::string(width - std::min(width, text.size()), ' ') +
                      text);
      continue;
    }
    c.behind.resize(right, exponent ? '0' : ' ');
    texts.push_back(absl::StrCat(std::string(left - c.before.size(), ' '),
                                 c.before, ".", c.behind, c.exponent));
  }
  return texts;
}

// A float that stands alone, as Python shows one.
template <typename T>
std::string FloatText(T v) {
  if (!std::isfinite(v)) return NotFinite(v);
  const T size = std::abs(v);
  const bool exponent = size != 0 && (size >= 1e16 || size < 1e-4);
  char room[400];
  std::string text(room, std::to_chars(room, room + sizeof room, v,
                                       exponent ? std::chars_format::scientific
                                                : std::chars_format::fixed)
                             .ptr);
  if (!exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string ComplexText(T v) {
  const auto part = [](auto x) {
    std::string text = FloatText(x);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  };
  return absl::StrCat("(", part(v.real()), std::signbit(v.imag()) ? "" : "+",
                      part(v.imag()), "j)");
}

template <typename T>
Texts ComplexTexts(const std::vector<T>& values) {
  std::vector<typename T::value_type> reals, imaginaries;
  for (const T v : values) {
    reals.push_back(v.real());
    imaginaries.push_back(v.imag());
  }
  Texts texts = FloatTexts(reals), second = FloatTexts(imaginaries, true);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string& imaginary = second[i];
    const size_t end = imaginary.find_last_not_of(' ') + 1;
    imaginary.insert(end, "j");
    texts[i] += imaginary;
  }
  return texts;
}

// The number with the fewest digits that is `v` as a half.
double FewestDigits(half v) {
  const double exact = static_cast<float>(v);
  constexpr int kMostDigits = 5;
  for (int digits = 1; digits <= kMostDigits && std::isfinite(exact);
       ++digits) {
    double shorter;
    if (absl::SimpleAtod(absl::StrFormat("%.*g", digits, exact), &shorter) &&
        static_cast<float>(half(shorter)) == exact) {
      return shorter;
    }
  }
  return exact;
}

Texts RightAligned(Texts texts) {
  size_t width = 0;
  for (const std::string& t : texts) width = std::max(width, t.size());
  for (std::string& t : texts) t.insert(0, width - t.size(), ' ');
  return texts;
}

// The elements at `places` of the tensor's buffer.
template <typename T>
std::vector<T> Taken(const Tensor& t, const std::vector<int64_t>& places) {
  std::vector<T> values;
  for (const int64_t i : places) values.push_back(t.data<T>()[i]);
  return values;
}

Texts PlainTexts(const Tensor& t, const std::vector<int64_t>& places) {
  Texts texts;
  DispatchDType(
      t.dtype(),
      TypeList<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t,
               uint64_t>{},
      [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (const T v : Taken<T>(t, places)) {
          texts.push_back(std::is_signed_v<T>
                              ? absl::StrCat(static_cast<int64_t>(v))
                              : absl::StrCat(static_cast<uint64_t>(v)));
        }
      });
  DispatchDType(t.dtype(), TypeList<qint8, qint16, qint32, quint8, quint16>{},
                [&](auto tag) {
                  using T = typename decltype(tag)::type;
                  for (const T v : Taken<T>(t, places)) {
                    texts.push_back(absl::StrCat(int64_t{v.value}));
                  }
                });
  DispatchDType(t.dtype(), TypeList<int4, uint4, int2, uint2>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T v : Taken<T>(t, places)) {
      texts.push_back(absl::StrCat(static_cast<int>(v)));
    }
  });
  return RightAligned(std::move(texts));
}

Texts ElementTexts(const Tensor& t, const std::vector<int64_t>& places,
                   bool alone) {
  Texts texts;
  const auto floats = [&](const auto& values) {
    texts = alone ? Texts{FloatText(values[0])} : FloatTexts(values);
  };
  switch (t.dtype()) {
    case DType::kFloat:
      floats(Taken<float>(t, places));
      return texts;
    case DType::kDouble:
      floats(Taken<double>(t, places));
      return texts;
    case DType::kHalf: {
      std::vector<double> values;
      for (const half v : Taken<half>(t, places)) {
        values.push_back(FewestDigits(v));
      }
      floats(values);
      return texts;
    }
    case DType::kComplex64:
    case DType::kComplex128:
      DispatchDType(t.dtype(), ComplexTypes{}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        const std::vector<T> values = Taken<T>(t, places);
        texts = alone ? Texts{ComplexText(values[0])} : ComplexTexts(values);
      });
      return texts;
    case DType::kBool:
      for (const bool v : Taken<bool>(t, places)) {
        texts.push_back(v ? (alone ? "True" : " True") : "False");
      }
      return texts;
    case DType::kString:
      for (const std::string& v : Taken<std::string>(t, places)) {
        texts.push_back(BytesText(v));
      }
      return texts;
    case DType::kResource:
    case DType::kVariant:
      return Texts(places.size(), absl::StrCat("<", DTypeName(t.dtype()), ">"));
    default:
      break;
  }
  // The small floats: NumPy shows each by itself.
  DispatchDType(
      t.dtype(),
      TypeList<bfloat16, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz,
               float8_e4m3b11fnuz, float8_e5m2fnuz>{},
      [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (const T v : Taken<T>(t, places)) {
          texts.push_back(absl::StrFormat("%g", static_cast<float>(v)));
        }
      });
  return texts.empty() ? PlainTexts(t, places) : texts;
}

// The elements that are shown, in lines.
class ArrayWriter {
 public:
  explicit ArrayWriter(const Tensor& t)
      : tensor_(t), summarize_(t.num_elements() > kThreshold) {
    Collect(0, 0);
    texts_ = ElementTexts(t, places_, t.rank() == 0);
  }

  std::string Write() {
    if (tensor_.rank() == 0) return texts_[0];
    return WriteDim(0, " ", kLineWidth);
  }

 private:
  // Calls f(i) for the indices that are shown, f(-1) between them.
  template <typename F>
  void EachShown(int dim, F&& f) const {
    const int64_t size = tensor_.dim(dim);
    const bool gap = summarize_ && 2 * kEdge < size;
    for (int64_t i = 0; i < (gap ? kEdge : size); ++i) f(i);
    if (!gap) return;
    f(-1);
    for (int64_t i = size - kEdge; i < size; ++i) f(i);
  }

  void Collect(int dim, int64_t place) {
    if (dim == tensor_.rank()) {
      places_.push_back(place);
      return;
    }
    EachShown(dim, [&](int64_t i) {
      if (i >= 0) Collect(dim + 1, place * tensor_.dim(dim) + i);
    });
  }

  std::string WriteDim(int dim, const std::string& indent, size_t width) {
    std::string out = dim + 1 == tensor_.rank() ? WriteRow(dim, indent, width)
                                                : WriteRows(dim, indent, width);
    return absl::StrCat("[", out.substr(indent.size()), "]");
  }

  std::string WriteRow(int dim, const std::string& indent, size_t width) {
    std::string out, line = indent;
    bool first = true;
    EachShown(dim, [&](int64_t i) {
      if (!first) line += ' ';
      first = false;
      const std::string word = i < 0 ? "..." : texts_[next_++];
      if (line.size() + word.size() > width - 1 &&
          line.size() > indent.size()) {
        absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
        line = indent;
      }
      line += word;
    });
    return out + line;
  }

  std::string WriteRows(int dim, const std::string& indent, size_t width) {
    const std::string between(tensor_.rank() - dim - 1, '\n');
    std::string out;
    EachShown(dim, [&](int64_t i) {
      if (!out.empty()) out += between;
      absl::StrAppend(
          &out, indent,
          i < 0 ? "..." : WriteDim(dim + 1, indent + " ", width - 1));
    });
    return out;
  }

  const Tensor& tensor_;
  const bool summarize_;
  std::vector<int64_t> places_;
  Texts texts_;
  size_t next_ = 0;
};

}  // namespace

std::string ArrayText(const Tensor& tensor) {
  if (tensor.num_elements() == 0) return "[]";
  return ArrayWriter(tensor).Write();
}

}  // namespace headrace::command
