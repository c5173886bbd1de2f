// Any bytes as what other machines answer, and as Hadoop's files: JSON of
// WebHDFS, configurations, tokens.
#include <cstdlib>

#include "base/remote/hadoop_config.h"
#include "base/remote/hadoop_token.h"
#include "base/remote/webhdfs_answer.h"
#include "base/text/xml_value.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  const StringView bytes(data, size);
  (void)ParseFileStatus(bytes);
  (void)ParseBoolean(bytes);
  (void)FindDataPort(bytes, "127.0.0.1:50075");
  if (const auto list = ParseFileStatuses(bytes); list.ok()) {
    for (const HdfsEntry& entry : *list) {
      if (entry.name.find('/') != std::string::npos) abort();
    }
  }
  HttpAnswer answer;
  answer.status = 403;
  answer.body = std::string(bytes);
  if (ParseRemoteError(answer, "hdfs://a/f").status.ok()) abort();
  HadoopConfig config;
  if (config.Add(bytes).ok()) {
    (void)NameNodeAddresses(config, {"hdfs", "service", "/f"});
  }
  if (const auto tokens = ParseHadoopTokens(bytes); tokens.ok()) {
    (void)TokenFor(*tokens, "service");
  }
  (void)ParseHdfsPath(bytes);
  return 0;
}
