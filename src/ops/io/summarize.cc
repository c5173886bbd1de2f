#include "ops/io/summarize.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

using TextTypes =
    TypeList<float, double, half, bfloat16, int32_t, int64_t, int8_t, int16_t,
             uint8_t, uint16_t, uint32_t, uint64_t, bool, qint8, quint8, qint16,
             quint16, qint32>;

// One element. `quote`: strings stand in quotes, their UTF-8 left as it is.
std::string ElementText(const Tensor& t, int64_t i, bool quote) {
  if (t.dtype() == DType::kString) {
    const std::string& s = t.data<std::string>()[i];
    return quote ? absl::StrCat("\"", absl::Utf8SafeCEscape(s), "\"")
                 : absl::CEscape(s);
  }
  if (t.dtype() == DType::kVariant) return t.data<Variant>()[i].DebugString();
  if (t.dtype() == DType::kResource) {
    const ResourceHandle& h = t.data<ResourceHandle>()[i];
    return absl::StrCat("<Resource ", h.container, "/", h.name, ">");
  }
  std::string text = "?";
  DispatchDType(t.dtype(), TextTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T v = t.data<T>()[i];
    if constexpr (std::is_same_v<T, double>) {
      text = DoubleText(v);
    } else if constexpr (std::is_integral_v<T>) {
      text = absl::StrCat(+v);
    } else if constexpr (std::is_class_v<T> && sizeof(T) <= 4 &&
                         requires { v.value; }) {
      text = absl::StrCat(+v.value);
    } else {
      text = FloatText(static_cast<float>(v));
    }
  });
  return text;
}

// Writes rows until `limit` elements are out.
class FlatPrinter {
 public:
  FlatPrinter(const Tensor& t, int64_t limit) : t_(t), limit_(limit) {}

  std::string Print() {
    const int64_t n = t_.num_elements();
    if (t_.rank() == 0) {
      if (limit_ > 0) absl::StrAppend(&out_, ElementText(t_, 0, false));
    } else if (n > 0) {
      Dimension(0);
    }
    if (n > limit_) out_ += "...";
    return std::move(out_);
  }

 private:
  void Dimension(int d) {
    const int64_t size = t_.dim(d);
    const bool innermost = d == t_.rank() - 1;
    for (int64_t i = 0; i < size; ++i) {
      if (at_ >= limit_) {
        // The end of the outermost row is marked by the caller.
        if (innermost && d != 0) out_ += "...";
        return;
      }
      if (innermost) {
        if (i > 0) out_ += ' ';
        out_ += ElementText(t_, at_++, false);
      } else {
        out_ += '[';
        Dimension(d + 1);
        out_ += ']';
      }
    }
  }

  const Tensor& t_;
  const int64_t limit_;
  int64_t at_ = 0;
  std::string out_;
};

class EndsPrinter {
 public:
  EndsPrinter(const Tensor& t, int64_t ends) : t_(t), ends_(ends) {}

  std::string Print() {
    Dimension(0, 0);
    return std::move(out_);
  }

 private:
  // Between two things of dimension d.
  void Space(int d) {
    if (d == t_.rank() - 1) {
      out_ += ' ';
      return;
    }
    out_.append(t_.rank() - 1 - d, '\n');
    out_.append(d + 1, ' ');
  }

  void Dimension(int d, int64_t first) {
    if (d == t_.rank()) {
      out_ += ElementText(t_, first, true);
      return;
    }
    const int64_t size = t_.dim(d);
    const int64_t stride = t_.shape().Product(d + 1, t_.rank());
    const int64_t head = std::min(ends_, size);
    const int64_t tail = std::max(size - ends_, head);
    out_ += '[';
    for (int64_t i = 0; i < head; ++i) {
      if (i > 0) Space(d);
      Dimension(d + 1, first + i * stride);
    }
    if (tail > head) {
      Space(d);
      out_ += "...";
    }
    for (int64_t i = tail; i < size; ++i) {
      Space(d);
      Dimension(d + 1, first + i * stride);
    }
    out_ += ']';
  }

  const Tensor& t_;
  const int64_t ends_;
  std::string out_;
};

}  // namespace

std::string FloatText(float v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", v);
  if (std::strtof(buffer, nullptr) != v) {
    std::snprintf(buffer, sizeof buffer, "%.9g", v);
  }
  return buffer;
}

std::string DoubleText(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.15g", v);
  if (std::strtod(buffer, nullptr) != v) {
    std::snprintf(buffer, sizeof buffer, "%.17g", v);
  }
  return buffer;
}

std::string SummarizeFlat(const Tensor& t, int64_t limit) {
  const int64_t n = t.num_elements();
  return FlatPrinter(t, limit < 0 ? n : limit).Print();
}

std::string SummarizeEnds(const Tensor& t, int64_t ends) {
  const int64_t n = t.num_elements();
  return EndsPrinter(t, ends < 0 ? n : std::min(ends, n)).Print();
}

}  // namespace headrace
