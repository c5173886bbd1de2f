#include "base/safety_policy.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace headrace {
namespace {

constexpr const char* kWords[kReaches] = {"reads",  "writes",    "network",
                                          "python", "processes", "prints"};
// A policy is written by hand; more is no policy.
constexpr size_t kLongestText = 1 << 20;
constexpr int64_t kMostSeconds = 3'000'000'000;

using Names = std::set<std::string, std::less<>>;

std::vector<StringView> WordsIn(StringView text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t,"), absl::SkipEmpty());
}

StatusOr<int64_t> CountIn(StringView text) {
  int64_t n;
  if (!absl::SimpleAtoi(text, &n) || n <= 0) {
    return InvalidArgument("expected a positive number or none, got '", text,
                           "'");
  }
  return n;
}

// "4096", "512 MiB", "2GiB".
StatusOr<int64_t> BytesIn(StringView text) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  int shift = 0;
  for (int i = 0; i < 4; ++i) {
    if (!absl::ConsumeSuffix(&text, kUnits[i])) continue;
    shift = 10 * (i + 1);
    break;
  }
  HR_ASSIGN_OR_RETURN(const int64_t n,
                      CountIn(absl::StripAsciiWhitespace(text)));
  if (n > INT64_MAX >> shift) return InvalidArgument("too many bytes");
  return n << shift;
}

bool AllDigits(StringView text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// "2" or "2.5", to the nanosecond: read as it is written.
StatusOr<int64_t> TimeIn(StringView text) {
  const size_t dot = std::min(text.find('.'), text.size());
  const StringView whole = text.substr(0, dot);
  std::string fraction(text.substr(std::min(dot + 1, text.size())));
  int64_t seconds = 0, ns = 0;
  if (AllDigits(whole) && AllDigits(fraction) && fraction.size() <= 9 &&
      absl::SimpleAtoi(whole, &seconds) && seconds <= kMostSeconds) {
    fraction.resize(9, '0');
    if (absl::SimpleAtoi(fraction, &ns) && (seconds > 0 || ns > 0)) {
      return seconds * 1'000'000'000 + ns;
    }
  }
  return InvalidArgument("expected a number of seconds, as 2.5, or none, got '",
                         text, "'");
}

Status AddNames(StringView text, Names* names) {
  for (const StringView word : WordsIn(text)) {
    if (!MayNameOp(word)) {
      return InvalidArgument("'", word, "' is no name of an op");
    }
    names->emplace(word);
  }
  return OkStatus();
}

Status SetFrom(StringView key, StringView value, SafetyPolicy* p) {
  if (key == "allow") {
    for (const StringView word : WordsIn(value)) {
      HR_RETURN_IF_ERROR(p->Allow(word));
    }
    return OkStatus();
  }
  if (key == "deny") return AddNames(value, &p->denied_ops);
  if (key == "only") return AddNames(value, &p->only_ops);
  const bool none = value == "none";
  StatusOr<int64_t> n = 0;
  int64_t* to = nullptr;
  if (key == "memory" || key == "output") {
    to = key == "memory" ? &p->memory : &p->output;
    if (!none) n = BytesIn(value);
  } else if (key == "time") {
    to = &p->time_ns;
    if (!none) n = TimeIn(value);
  } else if (key == "nodes" || key == "recursion") {
    to = key == "nodes" ? &p->nodes : &p->recursion;
    if (!none) n = CountIn(value);
  } else {
    return InvalidArgument("unknown key '", key, "'");
  }
  HR_ASSIGN_OR_RETURN(*to, std::move(n));
  return OkStatus();
}

std::string NumberOrNone(int64_t n) {
  return n == 0 ? "none" : absl::StrCat(n);
}

}  // namespace

const char* WordOf(Reach r) { return kWords[static_cast<int>(r)]; }

bool MayNameOp(StringView name) {
  if (name.empty() || name.size() > 256) return false;
  if (!absl::ascii_isupper(name[0]) && name[0] != '_') return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '>') return false;
  }
  return true;
}

Status SafetyPolicy::Allow(StringView word) {
  if (word == "files") {
    allowed.Add(Reach::kReadsFiles);
    allowed.Add(Reach::kWritesFiles);
    return OkStatus();
  }
  for (int r = 0; r < kReaches; ++r) {
    if (word != kWords[r]) continue;
    allowed.Add(static_cast<Reach>(r));
    return OkStatus();
  }
  if (!MayNameOp(word)) {
    return InvalidArgument("'", word, "' is neither an op nor one of files, ",
                           absl::StrJoin(kWords, ", "));
  }
  allowed_ops.emplace(word);
  return OkStatus();
}

StatusOr<SafetyPolicy> SafetyPolicy::Parse(StringView text) {
  if (text.size() > kLongestText) {
    return InvalidArgument("safety policy: ", text.size(), " bytes, at most ",
                           kLongestText, " are read");
  }
  SafetyPolicy p;
  int number = 0;
  for (StringView line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    Status s = InvalidArgument("expected 'key: value'");
    if (colon != StringView::npos) {
      s = SetFrom(absl::StripAsciiWhitespace(line.substr(0, colon)),
                  absl::StripAsciiWhitespace(line.substr(colon + 1)), &p);
    }
    if (!s.ok()) {
      return InvalidArgument("safety policy, line ", number, ": ", s.message());
    }
  }
  return p;
}

std::string SafetyPolicy::ToString() const {
  Names allow = allowed_ops;
  for (int r = 0; r < kReaches; ++r) {
    if (allowed.Has(static_cast<Reach>(r))) allow.insert(kWords[r]);
  }
  std::string text;
  const auto add = [&](const char* key, const Names& names) {
    if (names.empty()) return;
    absl::StrAppend(&text, key, ": ", absl::StrJoin(names, " "), "\n");
  };
  add("allow", allow);
  add("deny", denied_ops);
  add("only", only_ops);
  // Nanoseconds of the longest time have 19 digits.
  const std::string time =
      time_ns == 0
          ? "none"
          : absl::StrCat(time_ns / 1'000'000'000, ".",
                         absl::Dec(time_ns % 1'000'000'000, absl::kZeroPad9));
  absl::StrAppend(&text, "memory: ", NumberOrNone(memory), "\ntime: ", time,
                  "\nnodes: ", NumberOrNone(nodes),
                  "\nrecursion: ", NumberOrNone(recursion),
                  "\noutput: ", NumberOrNone(output), "\n");
  return text;
}

}  // namespace headrace
