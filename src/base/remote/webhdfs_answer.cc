#include "base/remote/webhdfs_answer.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/text/json_value.h"

namespace headrace {
namespace {

using Kind = JsonValue::Kind;
using Code = absl::StatusCode;

constexpr int64_t kNanosecondsPerMs = 1000000;
// What errors show of an answer that is none of WebHDFS's.
constexpr size_t kShownBytes = 200;

Status NoAnswer(StringView why) {
  return DataLoss("the answer is none of WebHDFS: ", why);
}

StatusOr<const JsonValue*> Member(const JsonValue& value, StringView name,
                                  Kind kind) {
  const JsonValue* member =
      value.kind == Kind::kObject ? value.Find(name) : nullptr;
  if (member != nullptr && member->kind == kind) return member;
  return NoAnswer(absl::StrCat("it has no ", name));
}

StatusOr<JsonValue> ParseAnswer(StringView json) {
  auto value = ParseJson(json);
  if (!value.ok()) return NoAnswer(value.status().message());
  return value;
}

StatusOr<int64_t> Count(const JsonValue& value, StringView name) {
  HR_ASSIGN_OR_RETURN(const JsonValue* member,
                      Member(value, name, Kind::kNumber));
  int64_t n = 0;
  if (absl::SimpleAtoi(member->text, &n) && n >= 0) return n;
  return NoAnswer(absl::StrCat("its ", name, " is ", member->text));
}

StatusOr<FileStat> StatOf(const JsonValue& value) {
  FileStat stat;
  HR_ASSIGN_OR_RETURN(const JsonValue* type,
                      Member(value, "type", Kind::kText));
  stat.is_directory = type->text == "DIRECTORY";
  HR_ASSIGN_OR_RETURN(const int64_t length, Count(value, "length"));
  if (!stat.is_directory) stat.size = static_cast<uint64_t>(length);
  HR_ASSIGN_OR_RETURN(const int64_t ms, Count(value, "modificationTime"));
  if (ms > std::numeric_limits<int64_t>::max() / kNanosecondsPerMs) {
    return NoAnswer("its modificationTime is too large");
  }
  stat.mtime_ns = ms * kNanosecondsPerMs;
  return stat;
}

StatusOr<std::string> DataPlace(const JsonValue& location, StringView place) {
  HR_ASSIGN_OR_RETURN(const JsonValue* ip,
                      Member(location, "ipAddr", Kind::kText));
  HR_ASSIGN_OR_RETURN(const JsonValue* host,
                      Member(location, "hostName", Kind::kText));
  HR_ASSIGN_OR_RETURN(const int64_t http, Count(location, "infoPort"));
  HR_ASSIGN_OR_RETURN(const int64_t data, Count(location, "xferPort"));
  const JsonValue* secure = location.Find("infoSecurePort");
  for (const std::string& name : {ip->text, host->text}) {
    if (place == absl::StrCat(name, ":", http) ||
        (secure != nullptr && place == absl::StrCat(name, ":", secure->text))) {
      return absl::StrCat(ip->text, ":", data);
    }
  }
  return NotFound("another DataNode");
}

// Classes of Java's, and what they are here.
constexpr struct {
  StringView name;
  Code code;
  HdfsTrouble trouble;
} kExceptions[] = {
    {"FileNotFoundException", Code::kNotFound, HdfsTrouble::kNone},
    {"FileAlreadyExistsException", Code::kAlreadyExists, HdfsTrouble::kNone},
    {"AccessControlException", Code::kPermissionDenied, HdfsTrouble::kNone},
    {"SecurityException", Code::kPermissionDenied, HdfsTrouble::kNone},
    {"AuthorizationException", Code::kPermissionDenied, HdfsTrouble::kNone},
    {"AuthenticationException", Code::kPermissionDenied, HdfsTrouble::kNone},
    {"InvalidToken", Code::kPermissionDenied, HdfsTrouble::kNone},
    {"ParentNotDirectoryException", Code::kFailedPrecondition,
     HdfsTrouble::kNone},
    {"PathIsNotEmptyDirectoryException", Code::kFailedPrecondition,
     HdfsTrouble::kNone},
    {"PathIsNotDirectoryException", Code::kFailedPrecondition,
     HdfsTrouble::kNone},
    {"IllegalArgumentException", Code::kInvalidArgument, HdfsTrouble::kNone},
    {"InvalidPathException", Code::kInvalidArgument, HdfsTrouble::kNone},
    {"UnsupportedOperationException", Code::kUnimplemented, HdfsTrouble::kNone},
    {"NSQuotaExceededException", Code::kResourceExhausted, HdfsTrouble::kNone},
    {"DSQuotaExceededException", Code::kResourceExhausted, HdfsTrouble::kNone},
    {"QuotaExceededException", Code::kResourceExhausted, HdfsTrouble::kNone},
    {"LeaseExpiredException", Code::kAborted, HdfsTrouble::kNone},
    {"AlreadyBeingCreatedException", Code::kUnavailable, HdfsTrouble::kRetry},
    {"RecoveryInProgressException", Code::kUnavailable, HdfsTrouble::kRetry},
    {"SafeModeException", Code::kUnavailable, HdfsTrouble::kRetry},
    {"RetriableException", Code::kUnavailable, HdfsTrouble::kRetry},
    {"StandbyException", Code::kUnavailable, HdfsTrouble::kStandby},
};

HdfsError ErrorOfClass(StringView name, StringView message, StringView path) {
  const std::string text = absl::StrCat(path, ": ", message, " (", name, ")");
  // HDFS says both by the class of a name that is taken.
  if (absl::StartsWith(message, "Parent path is not a directory") ||
      absl::StrContains(message, "already exists as a directory")) {
    return {Status(Code::kFailedPrecondition, text)};
  }
  for (const auto& row : kExceptions) {
    if (row.name == name) return {Status(row.code, text), row.trouble};
  }
  // Of a NameNode whose DataNodes are away.
  if (absl::StrContains(message, "could only be replicated to 0 nodes") ||
      absl::StrContains(message, "Failed to find datanode")) {
    return {Status(Code::kUnavailable, text), HdfsTrouble::kRetry};
  }
  return {Status(Code::kUnknown, text)};
}

// Of a proxy, a server of something else, or a NameNode that is starting.
HdfsError ErrorOfStatus(const HttpAnswer& answer, StringView path) {
  StringView shown = answer.body;
  shown = shown.substr(0, kShownBytes);
  const std::string text = absl::StrCat(path, ": HTTP status ", answer.status,
                                        " without a reason "
                                        "of WebHDFS",
                                        shown.empty() ? "" : ": ", shown);
  switch (answer.status) {
    case 401:
    case 403:
      return {Status(Code::kPermissionDenied, text)};
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return {Status(Code::kUnavailable, text), HdfsTrouble::kRetry};
    default:
      return {Status(Code::kFailedPrecondition, text)};
  }
}

}  // namespace

StatusOr<FileStat> ParseFileStatus(StringView json) {
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseAnswer(json));
  HR_ASSIGN_OR_RETURN(const JsonValue* status,
                      Member(value, "FileStatus", Kind::kObject));
  return StatOf(*status);
}

StatusOr<std::vector<HdfsEntry>> ParseFileStatuses(StringView json) {
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseAnswer(json));
  HR_ASSIGN_OR_RETURN(const JsonValue* statuses,
                      Member(value, "FileStatuses", Kind::kObject));
  HR_ASSIGN_OR_RETURN(const JsonValue* list,
                      Member(*statuses, "FileStatus", Kind::kList));
  std::vector<HdfsEntry> out;
  out.reserve(list->items.size());
  for (const JsonValue& item : list->items) {
    HR_ASSIGN_OR_RETURN(const JsonValue* name,
                        Member(item, "pathSuffix", Kind::kText));
    if (name->text == "." || name->text == ".." ||
        name->text.find_first_of("/\0", 0, 2) != std::string::npos) {
      return NoAnswer(absl::StrCat("'", name->text, "' is no name of a file"));
    }
    HR_ASSIGN_OR_RETURN(const FileStat stat, StatOf(item));
    out.push_back({name->text, stat});
  }
  return out;
}

StatusOr<bool> ParseBoolean(StringView json) {
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseAnswer(json));
  HR_ASSIGN_OR_RETURN(const JsonValue* member,
                      Member(value, "boolean", Kind::kBool));
  return member->text == "true";
}

StatusOr<std::string> FindDataPort(StringView json, StringView place) {
  HR_ASSIGN_OR_RETURN(const JsonValue value, ParseAnswer(json));
  HR_ASSIGN_OR_RETURN(const JsonValue* blocks,
                      Member(value, "LocatedBlocks", Kind::kObject));
  HR_ASSIGN_OR_RETURN(const JsonValue* list,
                      Member(*blocks, "locatedBlocks", Kind::kList));
  for (const JsonValue& block : list->items) {
    HR_ASSIGN_OR_RETURN(const JsonValue* locations,
                        Member(block, "locations", Kind::kList));
    for (const JsonValue& location : locations->items) {
      auto found = DataPlace(location, place);
      if (found.ok() || !absl::IsNotFound(found.status())) return found;
    }
  }
  return NotFound("no DataNode at ", place);
}

HdfsError ParseRemoteError(const HttpAnswer& answer, StringView path) {
  const auto value = ParseJson(answer.body);
  const JsonValue* error = value.ok() && value->kind == Kind::kObject
                               ? value->Find("RemoteException")
                               : nullptr;
  if (error == nullptr || error->kind != Kind::kObject) {
    return ErrorOfStatus(answer, path);
  }
  const JsonValue* name = error->Find("exception");
  const JsonValue* message = error->Find("message");
  // The words of the first line: what follows is Java's stack.
  StringView words = message == nullptr ? StringView() : message->text;
  words = words.substr(0, words.find('\n'));
  return ErrorOfClass(name == nullptr ? "no class" : StringView(name->text),
                      words, path);
}

}  // namespace headrace
