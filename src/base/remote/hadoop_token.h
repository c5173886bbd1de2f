// Delegation tokens, as YARN and `hdfs fetchdt` leave them in a file.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

struct HadoopToken {
  std::string kind, service;  // "HDFS_DELEGATION_TOKEN", "10.0.0.1:8020"
  std::string text;           // as addresses carry it
};

// Of a file of Hadoop's Credentials. DataLoss where it is none, Unimplemented
// for its form of protocol buffers.
StatusOr<std::vector<HadoopToken>> ParseHadoopTokens(StringView bytes);

// The text of the token of HDFS for a cluster ("host:port", or a name service):
// the only one, or the one whose service is the cluster's; "" where there is
// none. FailedPrecondition where several are none of the cluster's.
StatusOr<std::string> TokenFor(const std::vector<HadoopToken>& tokens,
                               StringView authority);

}  // namespace headrace
