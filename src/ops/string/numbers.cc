// StringToNumber, AsString: numbers and their text.
#include "absl/strings/numbers.h"

#include <charconv>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/io/summarize.h"
#include "ops/string/string_map.h"

namespace headrace {
namespace {

template <typename T>
bool Parse(StringView s, T* out) {
  // The library's own is the faster; what it does not take whole (signs, what
  // is out of range) the other decides.
  const char* const end = s.data() + s.size();
  const auto [read, error] = std::from_chars(s.data(), end, *out);
  if (error == std::errc() && read == end) return true;
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(s, out);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(s, out);
  } else {
    return absl::SimpleAtoi(s, out);
  }
}

template <typename T>
Status ToNumber(KernelContext& c) {
  return MapStringsOrFail<T>(c, [](const std::string& s, T* out) {
    const char* const end = s.data() + s.size();
    const auto [read, error] = std::from_chars(s.data(), end, *out);
    if (error == std::errc() && read == end) return OkStatus();
    if (Parse<T>(absl::StripAsciiWhitespace(s), out)) return OkStatus();
    return InvalidArgument(
        "StringToNumberOp could not correctly convert "
        "string: ",
        s);
  });
}

ComputeFn PickToNumber(const ResolvedOp& op) {
  using Types = TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t>;
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("out_type"), Types{},
                [&](auto tag) { fn = ToNumber<typename decltype(tag)::type>; });
  return fn;
}

HR_OP(StringToNumber)
    .Input("string_tensor: string")
    .Output("output: out_type")
    .Attr("out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT")
    .Doc("Numbers from their text.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(ComputeFor<PickToNumber>);

// How AsString prints: a printf format, made when the kernel is bound.
class AsString : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    auto kernel = std::make_unique<AsString>();
    HR_RETURN_IF_ERROR(kernel->Prepare(op));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status Run(KernelContext& c) override {
    const Tensor& in = c.input(0);
    std::string* out = c.out<std::string>(0);
    const int64_t n = in.num_elements();
    if (in.dtype() == DType::kString) {
      for (int64_t i = 0; i < n; ++i) {
        out[i] = Printf(in.data<std::string>()[i].c_str());
      }
      return OkStatus();
    }
    using Types = TypeList<float, double, half, bfloat16, complex64, complex128,
                           int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t,
                           uint32_t, uint64_t, bool>;
    bool done = DispatchDType(in.dtype(), Types{}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = in.data<T>();
      ParallelFor(n, 150, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = Text(from[i]);
      });
    });
    if (done) return OkStatus();
    return Unimplemented("AsString of ", DTypeName(in.dtype()));
  }

 private:
  Status Prepare(const ResolvedOp& op) {
    const DType t = op.type_attr("T");
    int64_t precision = op.int_attr("precision"), width = op.int_attr("width");
    const std::string& fill = op.string_attr("fill");
    const bool scientific = op.bool_attr("scientific");
    const bool shortest = op.bool_attr("shortest");
    const bool real = IsFloating(t) || IsComplex(t);
    if (!real && (scientific || shortest)) {
      return InvalidArgument(
          "scientific and shortest format not supported for "
          "datatype ",
          DTypeName(t));
    }
    if (!real && precision >= 0) {
      return InvalidArgument("precision not supported for datatype ",
                             DTypeName(t));
    }
    if (scientific && shortest) {
      return InvalidArgument(
          "Cannot select both scientific and shortest notation");
    }
    if (fill.size() > 1) {
      return InvalidArgument("Fill string must be one or fewer characters");
    }
    if (!fill.empty() && fill != " " && fill != "+" && fill != "-" &&
        fill != "0" && fill != "#") {
      return InvalidArgument("Fill argument not supported: \"", fill, "\"");
    }
    if (precision > 10000 || width > 10000) {
      return InvalidArgument("width and precision may be 10000 at most");
    }
    bare_ = fill.empty() && width < 0;
    precision_ = precision < 0 ? 6 : static_cast<int>(precision);
    notation_ = shortest     ? std::chars_format::general
                : scientific ? std::chars_format::scientific
                             : std::chars_format::fixed;
    format_ = absl::StrCat("%", fill);
    if (width > -1) absl::StrAppend(&format_, width);
    if (precision > -1) absl::StrAppend(&format_, ".", precision);
    if (real) {
      format_ += shortest ? "g" : scientific ? "e" : "f";
    } else if (t == DType::kBool || t == DType::kString) {
      format_ += "s";
    } else {
      format_ += IsUnsigned(t) ? "llu" : "lld";
    }
    return OkStatus();
  }

  // Of what printf would write without width and fill; empty where that is
  // longer than any number usually is.
  StringView Bare(double v, char (&room)[64]) const {
    const auto [end, error] =
        std::to_chars(room, room + sizeof(room), v, notation_, precision_);
    return error == std::errc() ? StringView(room, end - room) : StringView();
  }
  std::string Number(double v) const {
    if (bare_) {
      char room[64];
      if (StringView text = Bare(v, room); !text.empty()) {
        return std::string(text);
      }
    }
    return Printf(v);
  }
  template <typename T>
  std::string Whole(T v) const {
    if (!bare_) return Printf(v);
    char room[24];
    return std::string(room, std::to_chars(room, room + sizeof(room), v).ptr);
  }

  template <typename... A>
  std::string Printf(A... values) const {
    std::string out(64, '\0');
    int n = std::snprintf(out.data(), out.size(), format_.c_str(), values...);
    if (n >= static_cast<int>(out.size())) {
      out.resize(n + 1);
      n = std::snprintf(out.data(), out.size(), format_.c_str(), values...);
    }
    out.resize(std::max(n, 0));
    return out;
  }

  template <typename T>
  std::string Text(T v) const {
    if constexpr (std::is_same_v<T, bool>) {
      return v ? "true" : "false";  // as upstream: width and fill do not count
    } else if constexpr (std::is_same_v<T, complex64> ||
                         std::is_same_v<T, complex128>) {
      return absl::StrCat("(", Number(v.real()), ",", Number(v.imag()), ")");
    } else if constexpr (!std::is_integral_v<T>) {
      return Number(static_cast<double>(v));
    } else if constexpr (std::is_unsigned_v<T>) {
      return Whole(static_cast<unsigned long long>(v));  // NOLINT
    } else {
      return Whole(static_cast<long long>(v));  // NOLINT
    }
  }

  std::string format_;
  bool bare_ = false;  // neither width nor fill
  int precision_ = 6;
  std::chars_format notation_ = std::chars_format::fixed;
};

HR_OP(AsString)
    .Input("input: T")
    .Output("output: string")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
        "uint16, half, uint32, uint64, complex64, complex128, bool, variant, "
        "string}")
    .Attr("precision: int = -1")
    .Attr("scientific: bool = false")
    .Attr("shortest: bool = false")
    .Attr("width: int = -1")
    .Attr("fill: string = ''")
    .Doc("The text of numbers, as printf makes it.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(AsString::Make);

}  // namespace
}  // namespace headrace
