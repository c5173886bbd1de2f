#include "serving/warmup/warmup.h"

#include <atomic>
#include <thread>

#include "base/files/files.h"
#include "base/files/memory_file_system.h"
#include "formats/proto_text.h"
#include "formats/records.h"
#include "gtest/gtest.h"
#include "serving/metrics/metrics.h"
#include "serving/warmup/warmup_file.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;

PredictionLog WarmupLog(const std::string& text) {
  PredictionLog log;
  EXPECT_FALSE(ReadProtoText(text, &log)) << text;
  return log;
}

std::string RecordsText(const std::vector<std::string>& records) {
  MemoryFileSystem fs;
  auto file = *fs.OpenToWrite("r", WriteMode::kTruncate);
  auto writer = *RecordWriter::Create(file.get());
  for (const auto& r : records) EXPECT_TRUE(writer->Write(r).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return *ReadWholeFile(&fs, "r");
}

// How many records were read, beside the status.
std::pair<int, Status> ReadText(const std::string& bytes) {
  MemoryFileSystem fs;
  EXPECT_TRUE(WriteFileAtomically(&fs, "w", bytes).ok());
  int count = 0;
  Status s = ReadWarmupFile(&fs, "w", "/m/1/w", [&](PredictionLog&) {
    ++count;
    return OkStatus();
  });
  return {count, s};
}

TEST(WarmupFile, NoneIsFine) {
  MemoryFileSystem fs;
  EXPECT_TRUE(ReadWarmupFile(&fs, "none", "none", [](PredictionLog&) {
                return Internal("never");
              }).ok());
  EXPECT_EQ(ReadText(""), std::make_pair(0, OkStatus()));
}

TEST(WarmupFile, MostRecords) {
  std::vector<std::string> records(1000, WarmupLog("").SerializeAsString());
  EXPECT_EQ(ReadText(RecordsText(records)), std::make_pair(1000, OkStatus()));
  records.emplace_back();
  EXPECT_EQ(ReadText(RecordsText(records)).second,
            InvalidArgument("Number of warmup records exceeds the maximum "
                            "(1000) at /m/1/w"));
}

TEST(WarmupFile, NoRecords) {
  const Status s = ReadText("this is no record file, is it?").second;
  EXPECT_EQ(s.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(s.message().find(
                ". Please verify your warmup data is in TFRecord format."),
            std::string::npos)
      << s;
}

TEST(WarmupFile, NoLogs) {
  EXPECT_EQ(
      ReadText(RecordsText({"\xff\x01"})).second,
      InvalidArgument("Failed to parse warmup record: \\xff\\x01 from /m/1/w"));
  const Status s = ReadText(RecordsText({std::string(5000, '\xff')})).second;
  EXPECT_LT(s.message().size(), 400u);
}

TEST(WarmupFile, CutAtEveryByte) {
  const auto log = WarmupLog(
      "predict_log { request { model_spec { name: 'm' "
      "} } }");
  const std::string bytes =
      RecordsText({log.SerializeAsString(), log.SerializeAsString()});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto [count, s] = ReadText(bytes.substr(0, size));
    EXPECT_EQ(s.ok(), size == 0 || size == bytes.size() / 2) << size;
    EXPECT_EQ(count, size < bytes.size() / 2 ? 0 : 1);
  }
}

// A copy in memory of the model of tests/golden with warm-up records.
class WarmupTest : public testing::Test {
 protected:
  ServablePtr Load(const std::vector<PredictionLog>& logs,
                   const char* name = "m") {
    folder_ = absl::StrCat("ram://warmup_", name, "/1");
    std::string path;
    FileSystem* fs = *FileSystemFor(folder_, &path);
    Copy(HR_GOLDEN_DIR "/saved_models/plain", fs, path);
    std::vector<std::string> records;
    for (const auto& log : logs) records.push_back(log.SerializeAsString());
    EXPECT_TRUE(WriteFileAtomically(fs, JoinPath(path, kWarmupFile),
                                    RecordsText(records))
                    .ok());
    auto loaded = Servable::Load({name, 1}, folder_, {});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
  // Answers that record what they are asked.
  WarmupOptions Recording() {
    WarmupOptions options;
    options.answers.predict = [this](Models& models, const AnswerOptions&,
                                     CallPtr, const PredictRequest& request,
                                     Done<PredictResponse> done) {
      EXPECT_TRUE(models.Find(request.model_spec()).ok());
      MutexLock lock(mutex_);
      predicted_.push_back(request.model_spec());
      done(PredictResponse());
    };
    return options;
  }

  std::string folder_;
  Mutex mutex_;
  std::vector<ModelSpec> predicted_;

 private:
  static void Copy(const std::string& from, FileSystem* fs,
                   const std::string& to) {
    const auto names = PosixFileSystem()->List(from);
    ASSERT_TRUE(names.ok()) << names.status();
    for (const auto& name : *names) {
      const std::string path = JoinPath(from, name);
      if (PosixFileSystem()->Stat(path)->is_directory) {
        Copy(path, fs, JoinPath(to, name));
      } else {
        ASSERT_TRUE(
            CopyFile(PosixFileSystem(), path, fs, JoinPath(to, name)).ok());
      }
    }
  }
};

TEST_F(WarmupTest, NameAndVersionDoNotMatterTheSignatureDoes) {
  const auto version = Load(
      {WarmupLog("predict_log { request { model_spec { name: 'other' version { "
                 "value: 77 } signature_name: 's' } } }"),
       WarmupLog(""),
       WarmupLog("predict_log { request { model_spec { version_label: 'x' } } "
                 "}")});
  WarmupOptions options = Recording();
  options.request_iterations = 3;
  const int64_t read = metrics::ModelWarmupRecordsRead(folder_, "OK")->value();
  const int64_t runs = metrics::ModelWarmupLatency(folder_, "OK")->count();
  ASSERT_TRUE(WarmUp(version, options).ok());
  ASSERT_EQ(predicted_.size(), 6u);
  EXPECT_EQ(predicted_[0].name(), "m");
  EXPECT_EQ(predicted_[0].version_choice_case(),
            ModelSpec::VERSION_CHOICE_NOT_SET);
  EXPECT_EQ(predicted_[0].signature_name(), "s");
  EXPECT_EQ(predicted_[5].version_choice_case(),
            ModelSpec::VERSION_CHOICE_NOT_SET);
  EXPECT_EQ(metrics::ModelWarmupRecordsRead(folder_, "OK")->value(), read + 3);
  EXPECT_EQ(metrics::ModelWarmupLatency(folder_, "OK")->count(), runs + 1);
  // 0 means 1.
  options.request_iterations = 0;
  ASSERT_TRUE(WarmUp(version, options).ok());
  EXPECT_EQ(predicted_.size(), 8u);
}

TEST_F(WarmupTest, OtherKinds) {
  const auto version = Load(
      {WarmupLog("classify_log { request { model_spec { name: 'x' } } }"),
       WarmupLog("regress_log { request { model_spec { name: 'x' } } }"),
       WarmupLog("multi_inference_log { request { tasks { model_spec { name: "
                 "'x' signature_name: 'a' } } tasks { model_spec { name: 'x' } "
                 "} } }")},
      "kinds");
  std::vector<std::string> ran;
  WarmupOptions options;
  options.answers.classify = [&](auto&, auto&, auto, const auto& r, auto done) {
    ran.push_back("classify " + r.model_spec().name());
    done(tensorflow::serving::ClassificationResponse());
  };
  options.answers.regress = [&](auto&, auto&, auto, const auto& r, auto done) {
    ran.push_back("regress " + r.model_spec().name());
    done(tensorflow::serving::RegressionResponse());
  };
  options.answers.multi_inference = [&](auto&, auto&, auto, const auto& r,
                                        auto done) {
    ran.push_back("multi " + r.tasks(0).model_spec().name() + " " +
                  r.tasks(1).model_spec().name());
    done(tensorflow::serving::MultiInferenceResponse());
  };
  ASSERT_TRUE(WarmUp(version, options).ok());
  EXPECT_EQ(ran, (std::vector<std::string>{"classify kinds", "regress kinds",
                                           "multi kinds kinds"}));
}

TEST_F(WarmupTest, KindsThatCannotRun) {
  for (const char* kind : {"session_run_log { }", "predict_streamed_log { }"}) {
    const Status s = WarmUp(Load({WarmupLog(kind)}, "refused"), {});
    EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(s.message().substr(0, 33), "Unsupported log_type for warmup: ")
        << s;
  }
}

TEST_F(WarmupTest, AnErrorEndsIt) {
  const auto log = WarmupLog("predict_log { request { } }");
  const auto version = Load({log, log, log}, "error");
  for (const int threads : {1, 3}) {
    std::atomic<int> runs{0};
    WarmupOptions options;
    options.threads = threads;
    options.answers.predict = [&](auto&, auto&, auto, const auto&, auto done) {
      if (++runs == 2) return done(InvalidArgument("no such input"));
      done(PredictResponse());
    };
    EXPECT_EQ(WarmUp(version, options), InvalidArgument("no such input"));
    EXPECT_EQ(runs, threads == 1 ? 2 : runs.load());
  }
  EXPECT_GE(metrics::ModelWarmupLatency(folder_, "INVALID_ARGUMENT")->count(),
            2);
}

TEST_F(WarmupTest, SeveralThreads) {
  const std::vector<PredictionLog> logs(
      50, WarmupLog("predict_log { request { } }"));
  const auto version = Load(logs, "threads");
  WarmupOptions options = Recording();
  options.threads = 4;
  options.request_iterations = 2;
  ASSERT_TRUE(WarmUp(version, options).ok());
  EXPECT_EQ(predicted_.size(), 100u);
}

TEST_F(WarmupTest, AnswersMayComeLaterAndAStopEndsTheWait) {
  const auto version = Load({WarmupLog("predict_log { request { } }")}, "stop");
  Done<PredictResponse> held;
  WarmupOptions options;
  CancellationToken token;
  options.answers.predict = [&](Models&, const AnswerOptions&, CallPtr call,
                                const PredictRequest&,
                                Done<PredictResponse> done) {
    token.Cancel();
    // As a run does that looks at its stop.
    std::thread([call, done = std::move(done)] {
      while (!call->stop().cancelled()) std::this_thread::yield();
      done(call->stop().status());
    }).detach();
  };
  const StopScope scope(&token);
  EXPECT_EQ(WarmUp(version, options).code(), absl::StatusCode::kCancelled);
}

TEST_F(WarmupTest, Options) {
  tensorflow::serving::ModelWarmupOptions given;
  EXPECT_EQ(CheckWarmupOptions(given)->request_iterations, 1);
  given.mutable_num_request_iterations()->set_value(3);
  given.mutable_num_model_warmup_threads()->set_value(2);
  EXPECT_EQ(CheckWarmupOptions(given)->request_iterations, 3);
  EXPECT_EQ(CheckWarmupOptions(given)->threads, 2);
  given.mutable_num_model_warmup_threads()->set_value(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWarmupOptions(given).status()));
  given.mutable_num_model_warmup_threads()->set_value(1 << 20);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWarmupOptions(given).status()));
  given.clear_num_model_warmup_threads();
  given.mutable_enable_all_batch_sizes_warmup()->set_value(true);
  EXPECT_TRUE(absl::IsUnimplemented(CheckWarmupOptions(given).status()));
}

}  // namespace
}  // namespace headrace::serving
