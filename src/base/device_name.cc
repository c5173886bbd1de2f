#include "base/device_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace headrace {
namespace {

bool ReadNumber(StringView text, std::optional<int>* number) {
  int n = 0;
  if (text == "*") return true;
  if (!absl::SimpleAtoi(text, &n) || n < 0) return false;
  *number = n;
  return true;
}

bool IsJobName(StringView text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// "CPU:0", "GPU", "*:1".
bool ReadDevice(StringView text, DeviceName* name) {
  const size_t colon = text.find(':');
  const StringView type = text.substr(0, colon);
  if (type.empty() || (type != "*" && !IsJobName(type))) return false;
  if (type != "*") name->type = absl::AsciiStrToUpper(type);
  return colon == StringView::npos ||
         ReadNumber(text.substr(colon + 1), &name->id);
}

bool ReadPart(StringView part, DeviceName* name) {
  if (absl::ConsumePrefix(&part, "job:")) {
    if (part == "*") return true;
    if (!IsJobName(part)) return false;
    name->job = std::string(part);
    return true;
  }
  if (absl::ConsumePrefix(&part, "replica:")) {
    return ReadNumber(part, &name->replica);
  }
  if (absl::ConsumePrefix(&part, "task:")) {
    return ReadNumber(part, &name->task);
  }
  if (absl::ConsumePrefix(&part, "device:")) return ReadDevice(part, name);
  // The short form, which names these two types alone.
  const std::string upper = absl::AsciiStrToUpper(part.substr(0, 4));
  if (upper != "CPU:" && upper != "GPU:" && upper != "CPU" && upper != "GPU") {
    return false;
  }
  return ReadDevice(part, name);
}

}  // namespace

bool DeviceName::Parse(StringView text, DeviceName* name) {
  *name = DeviceName();
  if (text.empty()) return true;
  absl::ConsumePrefix(&text, "/");
  for (const StringView part : absl::StrSplit(text, '/')) {
    if (!ReadPart(part, name)) return false;
  }
  return true;
}

DeviceName DeviceName::OfTask(StringView job, int task) {
  DeviceName name;
  name.job = std::string(job);
  name.replica = 0;
  name.task = task;
  return name;
}

DeviceName DeviceName::Task() const {
  DeviceName out = *this;
  out.type.reset();
  out.id.reset();
  return out;
}

std::string DeviceName::ToString() const {
  std::string out;
  if (job) absl::StrAppend(&out, "/job:", *job);
  if (replica) absl::StrAppend(&out, "/replica:", *replica);
  if (task) absl::StrAppend(&out, "/task:", *task);
  if (type || id) {
    absl::StrAppend(&out, "/device:", type.value_or("*"), ":");
    if (id) {
      absl::StrAppend(&out, *id);
    } else {
      out += "*";
    }
  }
  return out;
}

bool DeviceName::Covers(const DeviceName& o) const {
  const auto open = [](const auto& mine, const auto& other) {
    return !mine || mine == other;
  };
  return open(job, o.job) && open(replica, o.replica) && open(task, o.task) &&
         open(type, o.type) && open(id, o.id);
}

DeviceName DeviceName::OrElse(const DeviceName& o) const {
  DeviceName name = *this;
  if (!name.job) name.job = o.job;
  if (!name.replica) name.replica = o.replica;
  if (!name.task) name.task = o.task;
  if (!name.type) name.type = o.type;
  if (!name.id) name.id = o.id;
  return name;
}

}  // namespace headrace
