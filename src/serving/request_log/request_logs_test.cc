#include "serving/request_log/request_logs.h"

#include "base/files/files.h"
#include "formats/proto_text.h"
#include "formats/records.h"
#include "gtest/gtest.h"
#include "serving/request_log/logged.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::PredictRequest;
using tensorflow::serving::PredictResponse;

ModelServerConfig LoggedModels(const std::string& models) {
  ModelServerConfig config;
  EXPECT_FALSE(ReadProtoText("model_config_list { " + models + " }", &config))
      << models;
  return config;
}
std::string LoggedModel(const std::string& name, const std::string& collector,
                        double rate = 1) {
  return absl::StrCat("config { name: '", name,
                      "' logging_config { log_collector_config { ", collector,
                      " } sampling_config { sampling_rate: ", rate, " } } } ");
}

std::vector<PredictionLog> RecordsIn(const std::string& folder) {
  std::string path;
  FileSystem* fs = *FileSystemFor(folder, &path);
  std::vector<PredictionLog> logs;
  const auto names = *fs->List(path);
  for (const auto& name : names) {
    const auto file = *fs->OpenToRead(JoinPath(path, name));
    RecordReader reader(file.get());
    for (std::string record; *reader.Next(&record);) {
      EXPECT_TRUE(logs.emplace_back().ParseFromString(record));
    }
  }
  return logs;
}

TEST(RequestLogs, AModelIsLoggedAsTheConfigInForceSays) {
  RequestLogs logs({"serve"});
  EXPECT_EQ(logs.Sampled("m"), nullptr);
  const auto opened = logs.Open(LoggedModels(
      LoggedModel("m", "type: 'tfrecord' filename_prefix: 'ram://logs_a/m'") +
      LoggedModel("never", "type: 'tfrecord' filename_prefix: 'ram://logs_a/n'",
                  0) +
      "config { name: 'silent' logging_config {} } config { name: 'plain' }"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(logs.Sampled("m"), nullptr) << "not in force yet";
  logs.Put(*opened);
  EXPECT_NE(logs.Sampled("m"), nullptr);
  for (const char* name : {"never", "silent", "plain", "other"}) {
    EXPECT_EQ(logs.Sampled(name), nullptr) << name;
  }
  const auto none = logs.Open(LoggedModels("config { name: 'm' }"));
  ASSERT_TRUE(none.ok());
  logs.Put(*none);
  EXPECT_EQ(logs.Sampled("m"), nullptr);
}

TEST(RequestLogs, ErrorsNameTheModel) {
  RequestLogs logs({});
  const auto refused =
      logs.Open(LoggedModels(LoggedModel("m", "type: 'kafka'")));
  EXPECT_EQ(refused.status(),
            InvalidArgument("logging_config of model m: "
                            "log_collector_config.type is \"kafka\"; the only "
                            "one is \"tfrecord\""));
}

TEST(RequestLogs, RequestsThatSucceedAreKeptWithTheirAnswers) {
  RequestLogs logs({"serve"});
  logs.Put(*logs.Open(LoggedModels(
      LoggedModel("m", "type: 'tfrecord' filename_prefix: 'ram://logs_b/m'"))));
  PredictRequest request;
  request.mutable_model_spec()->set_name("m");
  request.add_output_filter("y");
  int answers = 0;
  const auto ask = [&](const StatusOr<PredictResponse>& response) {
    Done<PredictResponse> done = [&](const StatusOr<PredictResponse>& given) {
      EXPECT_EQ(given.status(), response.status());
      ++answers;
    };
    Logged(&logs, request, std::move(done))(response);
  };
  PredictResponse response;
  response.mutable_model_spec()->set_name("m");
  response.mutable_model_spec()->mutable_version()->set_value(7);
  ask(response);
  ask(InvalidArgument("no"));
  request.mutable_model_spec()->set_name("other");
  ask(response);
  EXPECT_EQ(answers, 3);
  logs.Flush();
  const auto kept = RecordsIn("ram://logs_b");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].predict_log().request().output_filter(0), "y");
  EXPECT_EQ(kept[0].predict_log().response().model_spec().version().value(), 7);
  EXPECT_EQ(kept[0].log_metadata().model_spec().version().value(), 7);
}

}  // namespace
}  // namespace headrace::serving
