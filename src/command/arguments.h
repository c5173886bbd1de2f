// The command line of one subcommand, read by the table of its options. The
// same tables give help and completion.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace::command {

// `--name VALUE`, `--name=VALUE` or, without a value, `--name`.
struct OptionDef {
  StringView name;
  char letter = 0;   // `-o` for `--output`; 0: none
  StringView value;  // what it takes ("FILE"); empty: it is a switch
  StringView help;
  bool repeats = false;
  StringView needs;     // the option that it means nothing without
  StringView excludes;  // options that it does not go with, between commas
  unsigned kinds = 0;   // of what the path must name (source.h); 0: any

  constexpr OptionDef Needing(StringView option) const {
    OptionDef o = *this;
    o.needs = option;
    return o;
  }
  constexpr OptionDef Without(StringView options) const {
    OptionDef o = *this;
    o.excludes = options;
    return o;
  }
  constexpr OptionDef Of(unsigned source_kinds) const {
    OptionDef o = *this;
    o.kinds = source_kinds;
    return o;
  }
};

// What begins a command line.
struct PositionalDef {
  StringView name;  // "PATH"
  StringView help;
  bool optional = false;
};

// An error of how the command was called, as opposed to one of its work.
Status UsageError(StringView text);
bool IsUsageError(const Status& s);

// What was given. Options that the table lacks are never asked for.
class Arguments {
 public:
  // UsageError for options that are not in `options` or not with what they
  // need or exclude, values that are missing or too many, and a number of
  // positional arguments that is not asked for.
  // `--` ends the options; `-` is an argument.
  static StatusOr<Arguments> Parse(absl::Span<const std::string> args,
                                   absl::Span<const PositionalDef> positionals,
                                   absl::Span<const OptionDef> options);
  // Of the options alone that begin a command line: they end at its first other
  // argument, or at `--`. *count: how many of `args` they take.
  static StatusOr<Arguments> ParseLeading(absl::Span<const std::string> args,
                                          absl::Span<const OptionDef> options,
                                          size_t* count);

  const std::vector<std::string>& positionals() const { return positionals_; }
  bool Has(StringView option) const;
  // The last value given.
  std::optional<std::string> Get(StringView option) const;
  // All of them, in order.
  std::vector<std::string> All(StringView option) const;
  // UsageError for what is no number between `least` and `most`.
  StatusOr<int64_t> Int(StringView option, int64_t otherwise, int64_t least,
                        int64_t most) const;
  StatusOr<double> Number(StringView option, double otherwise, double least,
                          double most) const;
  // A list between commas; empty parts are left out.
  std::vector<std::string> List(StringView option) const;

 private:
  // The option at args[*i], and its value where that is the next one; *i comes
  // to stand behind them.
  Status TakeOption(absl::Span<const std::string> args,
                    absl::Span<const OptionDef> options, size_t* i);
  // Of all options, once they are taken.
  Status CheckTogether(absl::Span<const OptionDef> options) const;

  std::vector<std::string> positionals_;
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
};

}  // namespace headrace::command
