#include "serving/request_log/request_log.h"

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/proto_text.h"
#include "gtest/gtest.h"
#include "serving/metrics/metrics.h"

namespace headrace::serving {
namespace {

LoggingConfig ConfigOf(const std::string& text) {
  LoggingConfig config;
  EXPECT_FALSE(ReadProtoText(text, &config)) << text;
  return config;
}

LoggingConfig LogTo(const std::string& prefix, double rate = 1) {
  return ConfigOf(absl::StrCat(
      "log_collector_config { type: 'tfrecord' filename_prefix: '", prefix,
      "' } sampling_config { sampling_rate: ", rate, " }"));
}

PredictionLog PredictOf(const std::string& signature) {
  PredictionLog log;
  auto* spec =
      log.mutable_predict_log()->mutable_request()->mutable_model_spec();
  spec->set_name("m");
  spec->set_signature_name(signature);
  return log;
}

tensorflow::serving::ModelSpec SpecOf(int64_t version) {
  tensorflow::serving::ModelSpec spec;
  spec.set_name("m");
  spec.mutable_version()->set_value(version);
  return spec;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::string path;
  FileSystem* fs = *FileSystemFor(folder, &path);
  std::vector<std::string> files;
  const auto names = fs->List(path);
  EXPECT_TRUE(names.ok()) << names.status();
  for (const auto& name : *names) {
    files.push_back(JoinPath(path, name));
  }
  return files;
}

std::vector<PredictionLog> LogsOf(FileSystem* fs, const std::string& path) {
  const auto file = *fs->OpenToRead(path);
  RecordReader reader(file.get());
  std::vector<PredictionLog> logs;
  for (std::string record; *reader.Next(&record);) {
    EXPECT_TRUE(logs.emplace_back().ParseFromString(record));
  }
  return logs;
}
std::vector<PredictionLog> LogsOf(const std::string& folder) {
  std::vector<PredictionLog> logs;
  std::string path;
  FileSystem* fs = *FileSystemFor(folder, &path);
  for (const std::string& file : FilesIn(folder)) {
    for (auto& log : LogsOf(fs, file)) logs.push_back(std::move(log));
  }
  return logs;
}

void DeleteFolder(const std::string& folder) {
  std::string path;
  FileSystem* fs = *FileSystemFor(folder, &path);
  DeleteRecursively(fs, path).IgnoreError();
}

int64_t Counted(const char* model, const char* code) {
  return metrics::RequestLogCount(model, code)->value();
}

TEST(RequestLog, RecordsHaveTheirMetadata) {
  DeleteFolder("ram://log_metadata");
  const int64_t before = Counted("logged", "OK");
  auto writer = *RequestLogWriter::Start();
  auto log =
      *writer->Open("logged", LogTo("ram://log_metadata/a/p"), {"serve", "x"});
  ASSERT_NE(log, nullptr);
  EXPECT_TRUE(log->Sampled());
  log->Log(SpecOf(3), PredictOf("first"));
  log->Log(SpecOf(4), PredictOf("second"));
  writer->Flush();
  const auto files = FilesIn("ram://log_metadata/a");
  ASSERT_EQ(files.size(), 1u);
  // p-YYYYMMDD-HHMMSS.MICROS
  EXPECT_EQ(BaseName(files[0]).size(), 24u) << files[0];
  EXPECT_EQ(BaseName(files[0]).substr(0, 4), "p-20");
  const auto logs = LogsOf("ram://log_metadata/a");
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].predict_log().request().model_spec().signature_name(),
            "first");
  EXPECT_EQ(logs[1].log_metadata().model_spec().version().value(), 4);
  EXPECT_EQ(logs[1].log_metadata().sampling_config().sampling_rate(), 1);
  EXPECT_EQ(logs[1].log_metadata().saved_model_tags_size(), 2);
  EXPECT_GT(logs[1].log_metadata().timestamp_secs(), 1'700'000'000);
  EXPECT_EQ(Counted("logged", "OK"), before + 2);
}

TEST(RequestLog, NoneWhereNoneIsAskedFor) {
  auto writer = *RequestLogWriter::Start();
  EXPECT_EQ(*writer->Open("m", LoggingConfig(), {}), nullptr);
}

TEST(RequestLog, ConfigsThatAreRefused) {
  auto writer = *RequestLogWriter::Start();
  const struct {
    const char *text, *error;
  } rows[] = {
      {"log_collector_config { type: 'kafka' filename_prefix: '/p' }",
       "log_collector_config.type is \"kafka\"; the only one is \"tfrecord\""},
      {"log_collector_config { type: 'tfrecord' }",
       "log_collector_config.filename_prefix is empty"},
      {"log_collector_config { type: 'tfrecord' filename_prefix: 'ram://l/p' } "
       "sampling_config { sampling_rate: 1.5 }",
       "sampling_rate must lie between 0 and 1; was 1.5"},
      {"log_collector_config { type: 'tfrecord' filename_prefix: 'ram://l/p' } "
       "sampling_config { sampling_rate: nan }",
       "sampling_rate must lie between 0 and 1; was nan"},
      {"log_collector_config { type: 'tfrecord' filename_prefix: 'ram://l/p' } "
       "sampling_config { attributes: 1 }",
       "sampling_config.attributes"},
      {"custom_logging_config { }", "logging_config.custom_logging_config"},
      {"log_collector_config { type: 'tfrecord' filename_prefix: "
       "'gs://bucket/p' }",
       "gs"},
      {"log_collector_config { type: 'tfrecord' filename_prefix: "
       "'/dev/null/p' }",
       "/dev/null"},
  };
  for (const auto& row : rows) {
    const Status s = writer->Open("m", ConfigOf(row.text), {}).status();
    EXPECT_FALSE(s.ok()) << row.text;
    EXPECT_NE(s.message().find(row.error), std::string::npos) << s;
  }
}

TEST(RequestLog, SamplingRates) {
  const struct {
    const char* text;
    double rate;
  } rows[] = {
      {"", 0},
      {"sampling_rate: 0.25", 0.25},
      {"sampling_rate: 0.25 per_task_sampling_configs { sampling_rate: 0.5 }",
       0.5},
      {"sampling_rate: 0.25 per_task_sampling_configs { dc: 'x' sampling_rate: "
       "1 } per_task_sampling_configs { task_index: 0 sampling_rate: 1 } "
       "per_task_sampling_configs { sampling_rate: 0.75 } "
       "per_task_sampling_configs { sampling_rate: 1 }",
       0.75},
  };
  for (const auto& row : rows) {
    tensorflow::serving::SamplingConfig config;
    ASSERT_FALSE(ReadProtoText(row.text, &config));
    EXPECT_EQ(*SamplingRate(config), row.rate) << row.text;
  }
}

TEST(RequestLog, SamplesThatPartOfRequests) {
  auto writer = *RequestLogWriter::Start();
  for (const double rate : {0.0, 0.1, 0.5, 1.0}) {
    auto log = *writer->Open("m", LogTo("ram://log_rates/p", rate), {});
    int sampled = 0;
    for (int i = 0; i < 10'000; ++i) sampled += log->Sampled();
    EXPECT_NEAR(sampled, 10'000 * rate, 200);
  }
}

TEST(RequestLog, ModelsMayShareAPrefix) {
  DeleteFolder("ram://log_shared");
  auto writer = *RequestLogWriter::Start();
  auto a = *writer->Open("a", LogTo("ram://log_shared/p"), {});
  auto b = *writer->Open("b", LogTo("ram://log_shared/p"), {});
  a->Log(SpecOf(1), PredictOf("x"));
  b->Log(SpecOf(1), PredictOf("x"));
  writer->Flush();
  EXPECT_EQ(FilesIn("ram://log_shared").size(), 1u);
  EXPECT_EQ(LogsOf("ram://log_shared").size(), 2u);
}

TEST(RequestLog, WhatWaitsIsWrittenAtTheEnd) {
  DeleteFolder("ram://log_end");
  auto writer = *RequestLogWriter::Start();
  auto log = *writer->Open("m", LogTo("ram://log_end/p"), {});
  for (int i = 0; i < 100; ++i) log->Log(SpecOf(1), PredictOf("x"));
  log = nullptr;
  writer = nullptr;
  EXPECT_EQ(LogsOf("ram://log_end").size(), 100u);
}

// Its writes wait while they are held, or fail.
class SlowDisk : public MemoryFileSystem {
 public:
  StatusOr<std::unique_ptr<WritableFile>> OpenToWrite(const std::string& path,
                                                      WriteMode mode) override {
    MutexLock lock(mutex_);
    while (held_) changed_.Wait(mutex_);
    HR_RETURN_IF_ERROR(error_);
    return MemoryFileSystem::OpenToWrite(path, mode);
  }
  void Set(bool held, Status error) {
    MutexLock lock(mutex_);
    held_ = held;
    error_ = std::move(error);
    changed_.NotifyAll();
  }
  static SlowDisk* The() {
    static SlowDisk* const disk = [] {
      auto* made = new SlowDisk;
      EXPECT_TRUE(RegisterFileSystem("slowdisk", made).ok());
      return made;
    }();
    return disk;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ = false;
  Status error_;
};

TEST(RequestLog, RecordsAreDroppedWhereTheDiskIsSlow) {
  SlowDisk* disk = SlowDisk::The();
  disk->Set(true, OkStatus());
  auto writer = *RequestLogWriter::Start(/*most_waiting=*/10'000);
  auto log = *writer->Open("slow", LogTo("slowdisk://slow/p"), {});
  const int64_t written_before = Counted("slow", "OK");
  const int64_t dropped_before = Counted("slow", "RESOURCE_EXHAUSTED");
  const std::string text(1000, 'x');
  for (int i = 0; i < 100; ++i) log->Log(SpecOf(1), PredictOf(text));
  const int64_t dropped =
      Counted("slow", "RESOURCE_EXHAUSTED") - dropped_before;
  EXPECT_GE(dropped, 90);
  disk->Set(false, OkStatus());
  writer->Flush();
  EXPECT_EQ(Counted("slow", "OK") - written_before, 100 - dropped);
  log->Log(SpecOf(1), PredictOf(text));
  writer->Flush();
  EXPECT_EQ(Counted("slow", "OK") - written_before, 101 - dropped);
}

TEST(RequestLog, ErrorsOfTheDiskAreCounted) {
  SlowDisk* disk = SlowDisk::The();
  disk->Set(false, PermissionDenied("read-only"));
  auto writer = *RequestLogWriter::Start();
  auto log = *writer->Open("broken", LogTo("slowdisk://broken/p"), {});
  const int64_t before = Counted("broken", "PERMISSION_DENIED");
  log->Log(SpecOf(1), PredictOf("x"));
  writer->Flush();
  EXPECT_EQ(Counted("broken", "PERMISSION_DENIED"), before + 1);
  EXPECT_EQ(Counted("broken", "OK"), 0);
  disk->Set(false, OkStatus());
}

TEST(RotatedRecords, FilesDoNotGrowBeyondTheirSize) {
  MemoryFileSystem fs;
  {
    RotatedRecords records(&fs, "/logs/p", /*file_bytes=*/100);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(records.Write(std::string(30, 'x')).ok());
    }
    // Larger than a file: in one of its own.
    ASSERT_TRUE(records.Write(std::string(500, 'x')).ok());
  }
  const auto names = *fs.List("/logs");
  EXPECT_EQ(names.size(), 6u);
  int count = 0;
  for (const auto& name : names) {
    const auto file = *fs.OpenToRead(JoinPath("/logs", name));
    RecordReader reader(file.get());
    for (std::string record; *reader.Next(&record); ++count) {
    }
  }
  EXPECT_EQ(count, 11);
}

}  // namespace
}  // namespace headrace::serving
