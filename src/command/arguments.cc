#include "command/arguments.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace headrace::command {
namespace {

constexpr char kUsagePayload[] = "headrace.command.usage";

std::string Shown(const OptionDef& o) { return absl::StrCat("--", o.name); }

const OptionDef* FindOption(absl::Span<const OptionDef> options,
                            StringView name) {
  for (const OptionDef& o : options) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

// "-ofile", "-o" and "--name=value" taken apart.
struct Written {
  const OptionDef* option = nullptr;
  std::optional<std::string> value;
};

StatusOr<Written> TakeApart(StringView arg,
                            absl::Span<const OptionDef> options) {
  Written w;
  if (absl::StartsWith(arg, "--")) {
    StringView name = arg.substr(2);
    if (const size_t equals = name.find('='); equals != StringView::npos) {
      w.value = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    w.option = FindOption(options, name);
  } else {
    for (const OptionDef& o : options) {
      if (o.letter == arg[1]) w.option = &o;
    }
    if (arg.size() > 2) w.value = std::string(arg.substr(2));
  }
  if (w.option == nullptr) {
    return UsageError(absl::StrCat("unknown option ", arg));
  }
  if (w.option->value.empty() && w.value) {
    return UsageError(absl::StrCat(Shown(*w.option), " takes no value"));
  }
  return w;
}

bool IsOption(StringView arg) { return arg.size() > 1 && arg[0] == '-'; }

Status CheckCount(size_t given, absl::Span<const PositionalDef> wanted) {
  size_t needed = 0;
  for (const PositionalDef& p : wanted) needed += p.optional ? 0 : 1;
  if (given < needed) {
    return UsageError(absl::StrCat(wanted[given].name, " is missing"));
  }
  return OkStatus();
}

}  // namespace

Status UsageError(StringView text) {
  Status s = absl::InvalidArgumentError(text);
  s.SetPayload(kUsagePayload, absl::Cord());
  return s;
}

bool IsUsageError(const Status& s) {
  return s.GetPayload(kUsagePayload).has_value();
}

Status Arguments::TakeOption(absl::Span<const std::string> args,
                             absl::Span<const OptionDef> options, size_t* i) {
  HR_ASSIGN_OR_RETURN(Written w, TakeApart(args[*i], options));
  ++*i;
  if (!w.option->value.empty() && !w.value) {
    if (*i == args.size()) {
      return UsageError(
          absl::StrCat(Shown(*w.option), " needs a ", w.option->value));
    }
    w.value = args[(*i)++];
  }
  std::vector<std::string>& values = options_[std::string(w.option->name)];
  if (!values.empty() && !w.option->repeats) {
    return UsageError(absl::StrCat(Shown(*w.option), " is given twice"));
  }
  values.push_back(w.value.value_or(""));
  return OkStatus();
}

Status Arguments::CheckTogether(absl::Span<const OptionDef> options) const {
  for (const OptionDef& o : options) {
    if (!Has(o.name)) continue;
    if (!o.needs.empty() && !Has(o.needs)) {
      return UsageError(absl::StrCat(Shown(o), " needs --", o.needs));
    }
    for (StringView other :
         absl::StrSplit(o.excludes, ',', absl::SkipEmpty())) {
      if (!Has(other)) continue;
      return UsageError(absl::StrCat(Shown(o), " does not go with --", other));
    }
  }
  return OkStatus();
}

StatusOr<Arguments> Arguments::Parse(
    absl::Span<const std::string> args,
    absl::Span<const PositionalDef> positionals,
    absl::Span<const OptionDef> options) {
  Arguments made;
  bool only_positionals = false;
  for (size_t i = 0; i < args.size();) {
    const std::string& arg = args[i];
    if (!only_positionals && arg == "--") {
      only_positionals = true;
      ++i;
    } else if (!only_positionals && IsOption(arg)) {
      HR_RETURN_IF_ERROR(made.TakeOption(args, options, &i));
    } else if (made.positionals_.size() == positionals.size()) {
      return UsageError(absl::StrCat("unexpected argument ", arg));
    } else {
      made.positionals_.push_back(arg);
      ++i;
    }
  }
  HR_RETURN_IF_ERROR(CheckCount(made.positionals_.size(), positionals));
  HR_RETURN_IF_ERROR(made.CheckTogether(options));
  return made;
}

StatusOr<Arguments> Arguments::ParseLeading(absl::Span<const std::string> args,
                                            absl::Span<const OptionDef> options,
                                            size_t* count) {
  Arguments made;
  *count = 0;
  while (*count < args.size() && IsOption(args[*count]) &&
         args[*count] != "--") {
    HR_RETURN_IF_ERROR(made.TakeOption(args, options, count));
  }
  HR_RETURN_IF_ERROR(made.CheckTogether(options));
  return made;
}

bool Arguments::Has(StringView option) const {
  return options_.contains(option);
}

std::optional<std::string> Arguments::Get(StringView option) const {
  auto it = options_.find(option);
  if (it == options_.end()) return std::nullopt;
  return it->second.back();
}

std::vector<std::string> Arguments::All(StringView option) const {
  auto it = options_.find(option);
  return it == options_.end() ? std::vector<std::string>() : it->second;
}

StatusOr<int64_t> Arguments::Int(StringView option, int64_t otherwise,
                                 int64_t least, int64_t most) const {
  const std::optional<std::string> text = Get(option);
  if (!text) return otherwise;
  int64_t value;
  if (absl::SimpleAtoi(*text, &value) && value >= least && value <= most) {
    return value;
  }
  return UsageError(absl::StrCat("--", option, " needs a whole number from ",
                                 least, " to ", most, ", got ", *text));
}

StatusOr<double> Arguments::Number(StringView option, double otherwise,
                                   double least, double most) const {
  const std::optional<std::string> text = Get(option);
  if (!text) return otherwise;
  double value;
  if (absl::SimpleAtod(*text, &value) && value >= least && value <= most) {
    return value;
  }
  return UsageError(absl::StrCat("--", option, " needs a number from ", least,
                                 " to ", most, ", got ", *text));
}

std::vector<std::string> Arguments::List(StringView option) const {
  std::vector<std::string> parts;
  for (const std::string& value : All(option)) {
    for (StringView part : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
      parts.emplace_back(absl::StripAsciiWhitespace(part));
    }
  }
  return parts;
}

}  // namespace headrace::command
