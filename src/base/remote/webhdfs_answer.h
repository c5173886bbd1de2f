// What WebHDFS answers, as values. Answers come from strangers: each is
// checked, and what does not fit is DataLoss.
#pragma once

#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "base/net/http_client.h"

namespace headrace {

// Of GETFILESTATUS.
StatusOr<FileStat> ParseFileStatus(StringView json);

struct HdfsEntry {
  std::string name;  // "" where the list is a file's own
  FileStat stat;
};
// Of LISTSTATUS. Names with a slash, "." and ".." are refused.
StatusOr<std::vector<HdfsEntry>> ParseFileStatuses(StringView json);

// {"boolean": true}
StatusOr<bool> ParseBoolean(StringView json);

// Of GET_BLOCK_LOCATIONS: "host:port" of the data port of the DataNode whose
// HTTP port is at `place` ("host:port"). NotFound where the answer has none.
StatusOr<std::string> FindDataPort(StringView json, StringView place);

// What a call came to: what to do next, beside the error.
enum class HdfsTrouble {
  kNone,     // the request was understood and refused
  kStandby,  // another NameNode is to be asked
  kRetry,    // the same one, after a while
};
struct HdfsError {
  Status status;
  HdfsTrouble trouble = HdfsTrouble::kNone;
};
// An answer that is none of 2xx and 3xx. The status' text begins with `path`
// and has the exception's class.
HdfsError ParseRemoteError(const HttpAnswer& answer, StringView path);

}  // namespace headrace
