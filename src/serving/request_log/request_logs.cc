#include "serving/request_log/request_logs.h"

#include <utility>

namespace headrace::serving {

StatusOr<std::shared_ptr<const RequestLogs::ByModel>> RequestLogs::Open(
    const ModelServerConfig& config) {
  auto logs = std::make_shared<ByModel>();
  for (const auto& model : config.model_config_list().config()) {
    if (!model.has_logging_config()) continue;
    RequestLogWriter* writer = nullptr;
    {
      MutexLock lock(mutex_);
      if (writer_ == nullptr) {
        HR_ASSIGN_OR_RETURN(writer_, RequestLogWriter::Start());
      }
      writer = writer_.get();
    }
    StatusOr<RequestLogPtr> log =
        writer->Open(model.name(), model.logging_config(), tags_);
    if (!log.ok()) {
      return Status(log.status().code(),
                    absl::StrCat("logging_config of model ", model.name(), ": ",
                                 log.status().message()));
    }
    if (*log != nullptr) logs->emplace(model.name(), *std::move(log));
  }
  return std::shared_ptr<const ByModel>(std::move(logs));
}

void RequestLogs::Put(std::shared_ptr<const ByModel> logs) {
  any_ = logs != nullptr && !logs->empty();
  MutexLock lock(mutex_);
  logs_.swap(logs);
}

RequestLogPtr RequestLogs::Sampled(const std::string& model) {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  std::shared_ptr<const ByModel> logs;
  {
    MutexLock lock(mutex_);
    logs = logs_;
  }
  if (logs == nullptr) return nullptr;
  auto it = logs->find(model);
  if (it == logs->end() || !it->second->Sampled()) return nullptr;
  return it->second;
}

void RequestLogs::Flush() {
  RequestLogWriter* writer = nullptr;
  {
    MutexLock lock(mutex_);
    writer = writer_.get();
  }
  if (writer != nullptr) writer->Flush();
}

}  // namespace headrace::serving
