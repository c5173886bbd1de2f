// Any bytes as the text of a config: the first says whether of models or of
// batches. What is read is written and read as the same.
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdlib>

#include "serving/manager/board.h"
#include "serving/manager/config.h"
#include "serving/proto_file.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace headrace::serving {
namespace {

void ReadModels(const std::string& text) {
  const auto config = ParseModelServerConfig(text, "fuzz");
  if (!config.ok()) return;
  if (!CheckConfig(*config, {}).ok()) return;
  if (!CheckConfig(*config, *config).ok()) std::abort();
  std::string written;
  if (!google::protobuf::TextFormat::PrintToString(*config, &written)) return;
  const auto again = ParseModelServerConfig(written, "fuzz");
  if (!again.ok() || !google::protobuf::util::MessageDifferencer::Equivalent(
                         *config, *again)) {
    std::abort();
  }
  Board board(false);
  for (const std::string& name : board.SetModels(*config)) {
    board.SetListing(name, std::map<int64_t, std::string>{{1, "1"}, {2, "2"}},
                     {});
  }
  std::deque<LoadJob> loads;
  std::vector<ServablePtr> garbage;
  board.Advance(&loads, &garbage);
}

void ReadBatching(const std::string& text) {
  tensorflow::serving::BatchingParameters parameters;
  if (!ReadProtoConfig(text, "fuzz", &parameters).ok()) return;
  std::string written;
  if (!google::protobuf::TextFormat::PrintToString(parameters, &written)) {
    return;
  }
  if (!ReadProtoConfig(written, "fuzz", &parameters).ok()) std::abort();
}

}  // namespace
}  // namespace headrace::serving

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(data + 1, size - 1);
  if (data[0] == 'b') {
    headrace::serving::ReadBatching(text);
  } else {
    headrace::serving::ReadModels(text);
  }
  return 0;
}
