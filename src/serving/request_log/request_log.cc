#include "serving/request_log/request_log.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/files/files.h"
#include "base/guard.h"
#include "base/threads.h"
#include "serving/metrics/metrics.h"

namespace headrace::serving {
namespace {

constexpr char kRecordCollector[] = "tfrecord";

// Scatters consecutive numbers over all of 64 bits (splitmix64).
uint64_t Scattered(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Status CheckConfig(const LoggingConfig& config) {
  if (config.has_custom_logging_config()) {
    return Unimplemented("logging_config.custom_logging_config");
  }
  const auto& collector = config.log_collector_config();
  if (collector.type() != kRecordCollector) {
    return InvalidArgument("log_collector_config.type is \"", collector.type(),
                           "\"; the only one is \"", kRecordCollector, "\"");
  }
  if (collector.filename_prefix().empty()) {
    return InvalidArgument("log_collector_config.filename_prefix is empty");
  }
  if (config.sampling_config().attributes() != 0) {
    return Unimplemented("sampling_config.attributes");
  }
  return OkStatus();
}

Status WriteItem(RotatedRecords& records, const PredictionLog& log) {
  std::string bytes;
  // Fails for messages of 2 GB alone.
  if (!log.SerializeToString(&bytes)) {
    return ResourceExhausted("a request to log is too large");
  }
  return records.Write(bytes);
}

}  // namespace

StatusOr<double> SamplingRate(
    const tensorflow::serving::SamplingConfig& config) {
  double rate = config.sampling_rate();
  for (const auto& task : config.per_task_sampling_configs()) {
    if (!task.dc().empty() || task.has_task_index()) continue;
    rate = task.sampling_rate();
    break;
  }
  if (!(rate >= 0 && rate <= 1)) {
    return InvalidArgument("sampling_rate must lie between 0 and 1; was ",
                           rate);
  }
  return rate;
}

bool RequestLog::Sampled() {
  if (rate_ >= 1) return true;
  if (rate_ <= 0) return false;
  const uint64_t n = asked_.fetch_add(1, std::memory_order_relaxed);
  // The upper 53 bits are a fraction of a double's precision.
  return static_cast<double>(Scattered(n) >> 11) * 0x1p-53 < rate_;
}

void RequestLog::Log(const tensorflow::serving::ModelSpec& spec,
                     PredictionLog log) {
  const Status s = Guarded("logging a request", [&] {
    auto* metadata = log.mutable_log_metadata();
    *metadata->mutable_model_spec() = spec;
    *metadata->mutable_sampling_config() = config_.sampling_config();
    for (const auto& tag : tags_) metadata->add_saved_model_tags(tag);
    metadata->set_timestamp_secs(
        std::chrono::duration_cast<std::chrono::seconds>(
            std::chrono::system_clock::now().time_since_epoch())
            .count());
    const size_t bytes = log.ByteSizeLong();
    if (!writer_->Add({records_, model_, std::move(log), bytes})) {
      return ResourceExhausted("the disk is slow");
    }
    return OkStatus();
  });
  if (!s.ok()) {
    metrics::RequestLogCount(model_, metrics::CodeName(s))->Increment();
  }
}

StatusOr<std::unique_ptr<RequestLogWriter>> RequestLogWriter::Start(
    size_t most_waiting) {
  std::unique_ptr<RequestLogWriter> made(new RequestLogWriter(most_waiting));
  HR_ASSIGN_OR_RETURN(made->thread_,
                      StartThread([writer = made.get()] { writer->Work(); }));
  return made;
}

RequestLogWriter::~RequestLogWriter() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

StatusOr<std::shared_ptr<RotatedRecords>> RequestLogWriter::RecordsOf(
    const std::string& prefix) {
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(prefix, &path));
  const std::string folder(DirName(path));
  if (!folder.empty()) HR_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  MutexLock lock(mutex_);
  std::erase_if(records_, [](const auto& r) { return r.second.expired(); });
  auto& kept = records_[prefix];
  auto records = kept.lock();
  if (records == nullptr) {
    records = std::make_shared<RotatedRecords>(fs, path);
    kept = records;
  }
  return records;
}

StatusOr<RequestLogPtr> RequestLogWriter::Open(const std::string& model,
                                               const LoggingConfig& config,
                                               std::vector<std::string> tags) {
  if (!config.has_log_collector_config() &&
      !config.has_custom_logging_config()) {
    return RequestLogPtr();
  }
  HR_RETURN_IF_ERROR(CheckConfig(config));
  RequestLogPtr log(new RequestLog);
  HR_ASSIGN_OR_RETURN(log->rate_, SamplingRate(config.sampling_config()));
  HR_ASSIGN_OR_RETURN(
      log->records_,
      RecordsOf(config.log_collector_config().filename_prefix()));
  log->writer_ = this;
  log->model_ = model;
  log->tags_ = std::move(tags);
  log->config_ = config;
  return log;
}

bool RequestLogWriter::Add(Item item) {
  {
    MutexLock lock(mutex_);
    if (item.bytes > most_waiting_ - std::min(waiting_bytes_, most_waiting_)) {
      return false;
    }
    const size_t bytes = item.bytes;
    waiting_.push_back(std::move(item));
    waiting_bytes_ += bytes;
    if (waiting_.size() > 1 || writing_) return true;
  }
  changed_.NotifyAll();
  return true;
}

void RequestLogWriter::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
    if (waiting_.empty()) return;
    std::vector<Item> items = std::move(waiting_);
    waiting_.clear();
    writing_ = true;
    size_t bytes = 0;
    for (const Item& item : items) bytes += item.bytes;
    {
      MutexUnlock unlock(mutex_);
      Write(std::move(items));
    }
    waiting_bytes_ -= bytes;
    writing_ = false;
    changed_.NotifyAll();
  }
}

void RequestLogWriter::Write(std::vector<Item> items) {
  std::set<RotatedRecords*> written;
  for (Item& item : items) {
    const Status s = Guarded("logging a request", [&] {
      written.insert(item.records.get());
      return WriteItem(*item.records, item.log);
    });
    item.log.Clear();
    Guarded("counting", [&] {
      metrics::RequestLogCount(item.model, metrics::CodeName(s))->Increment();
      return OkStatus();
    }).IgnoreError();
  }
  // An error shows at the next record of that file.
  for (RotatedRecords* records : written) records->Flush().IgnoreError();
}

void RequestLogWriter::Flush() {
  MutexLock lock(mutex_);
  while (!waiting_.empty() || writing_) changed_.Wait(mutex_);
}

}  // namespace headrace::serving
