// RegexReplace, RegexFullMatch and their forms with a fixed pattern.
#include "ops/string/string_map.h"
#include "re2/re2.h"

namespace headrace {
namespace {

Status CheckPattern(const RE2& pattern) {
  if (pattern.ok()) return OkStatus();
  return InvalidArgument("Invalid pattern: ", pattern.pattern(),
                         ", error: ", pattern.error());
}

void Replace(KernelContext& c, const RE2& pattern, const std::string& rewrite) {
  const bool global = c.op().bool_attr("replace_global");
  MapStrings<std::string>(c, [&](std::string s) {
    if (global) {
      RE2::GlobalReplace(&s, pattern, rewrite);
    } else {
      RE2::Replace(&s, pattern, rewrite);
    }
    return s;
  });
}

Status CheckScalar(const Tensor& t, StringView name) {
  if (t.rank() == 0) return OkStatus();
  return InvalidArgument(name, " must be scalar, but received ", t.shape());
}

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

Status RegexReplace(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckScalar(c.input(1), "Pattern"));
  HR_RETURN_IF_ERROR(CheckScalar(c.input(2), "Rewrite"));
  RE2 pattern(c.input(1).scalar<std::string>(), Quiet());
  HR_RETURN_IF_ERROR(CheckPattern(pattern));
  Replace(c, pattern, c.input(2).scalar<std::string>());
  return OkStatus();
}

HR_OP(RegexReplace)
    .Input("input: string")
    .Input("pattern: string")
    .Input("rewrite: string")
    .Output("output: string")
    .Attr("replace_global: bool = true")
    .Doc("Replaces what matches a pattern; \\1 to \\9 are groups.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Cpu(Compute<RegexReplace>);

Status RegexFullMatch(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckScalar(c.input(1), "Pattern"));
  RE2 pattern(c.input(1).scalar<std::string>(), Quiet());
  HR_RETURN_IF_ERROR(CheckPattern(pattern));
  MapStrings<bool>(
      c, [&](const std::string& s) { return RE2::FullMatch(s, pattern); });
  return OkStatus();
}

HR_OP(RegexFullMatch)
    .Input("input: string")
    .Input("pattern: string")
    .Output("output: bool")
    .Doc("Whether the whole string matches a pattern.")
    .Shape(UnchangedShape)
    .Cpu(Compute<RegexFullMatch>);

// The pattern is compiled when the kernel is bound.
class StaticRegex : public Kernel {
 public:
  explicit StaticRegex(const ResolvedOp& op)
      : pattern_(op.string_attr("pattern"), Quiet()) {}
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(CheckPattern(pattern_));
    if (c.output(0).dtype() == DType::kBool) {
      MapStrings<bool>(
          c, [&](const std::string& s) { return RE2::FullMatch(s, pattern_); });
    } else {
      Replace(c, pattern_, c.op().string_attr("rewrite"));
    }
    return OkStatus();
  }

 private:
  const RE2 pattern_;
};

HR_OP(StaticRegexReplace)
    .Input("input: string")
    .Output("output: string")
    .Attr("pattern: string")
    .Attr("rewrite: string")
    .Attr("replace_global: bool = true")
    .Doc("Replaces what matches a pattern; \\1 to \\9 are groups.")
    .Shape(UnchangedShape)
    .Cpu(Bind<StaticRegex>);

HR_OP(StaticRegexFullMatch)
    .Input("input: string")
    .Output("output: bool")
    .Attr("pattern: string")
    .Doc("Whether the whole string matches a pattern.")
    .Shape(UnchangedShape)
    .Cpu(Bind<StaticRegex>);

}  // namespace
}  // namespace headrace
