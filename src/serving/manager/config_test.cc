#include "serving/manager/config.h"

#include <gtest/gtest.h>

#include "base/files/files.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::ModelServerConfig;

ModelServerConfig ConfigFrom(const std::string& text) {
  auto config = ParseModelServerConfig(text, "test");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ModelServerConfig();
}

std::string ListOf(const std::string& models) {
  return "model_config_list { " + models + " }";
}
std::string ModelOf(const std::string& name, const std::string& path,
                    const std::string& rest = "model_platform: 'tensorflow'") {
  return "config { name: '" + name + "' base_path: '" + path + "' " + rest +
         " }";
}

TEST(ModelConfigText, TakesAllWaysOfWritingIt) {
  const ModelServerConfig config = ConfigFrom(R"(
    # a comment
    model_config_list: {
      config: {
        name: "a", base_path: '/models/a', model_platform: "tensorflow",
        model_version_policy { specific { versions: 1 versions: 2 } }
        version_labels { key: "stable" value: 1 }
        version_labels: { key: 'canary', value: 2 },
      }
      config { name: "b" base_path: "/models/${HOME}" model_type: TENSORFLOW
               model_version_policy: { latest: { num_versions: 2 } } }
    })");
  ASSERT_EQ(config.model_config_list().config_size(), 2);
  const auto& a = config.model_config_list().config(0);
  EXPECT_EQ(a.model_version_policy().specific().versions_size(), 2);
  EXPECT_EQ(a.version_labels().at("canary"), 2);
  EXPECT_EQ(config.model_config_list().config(1).base_path(),
            "/models/${HOME}");
  EXPECT_EQ(CheckConfig(config, {}), OkStatus());
}

TEST(ModelConfigText, RefusesWhatDoesNotParse) {
  const struct {
    const char* text;
    const char* why;
  } kRows[] = {
      {"model_config_list { config { nam: 'a' } }", "nam"},
      {"model_config_list {", "line 1"},
      {"model_config_list { config { name: 3 } }", "string"},
      {"\xff\xfe", "line 1"},
      {"model_config_list { config { model_version_policy { latest {} all {} } "
       "} }",
       "oneof"},
  };
  for (const auto& row : kRows) {
    const Status s = ParseModelServerConfig(row.text, "/c/f").status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << row.text;
    EXPECT_EQ(s.message().find("Invalid protobuf file: '/c/f'"), 0u) << s;
    EXPECT_NE(s.message().find(row.why), std::string::npos) << s;
  }
}

TEST(ModelConfigText, CutAtAnyByteIsRefusedOrRead) {
  const std::string text =
      ListOf(ModelOf("a", "/a",
                     "model_platform: 'tensorflow' model_version_policy { "
                     "specific { versions: 12 } } version_labels { key: 'x' "
                     "value: 3 }"));
  for (size_t i = 0; i < text.size(); ++i) {
    const auto config = ParseModelServerConfig(text.substr(0, i), "cut");
    if (i != 0) {
      EXPECT_FALSE(config.ok()) << i;
    }
  }
  EXPECT_TRUE(ParseModelServerConfig(text, "whole").ok());
}

TEST(ModelConfigText, ReadsAFileOrSaysWhichIsMissing) {
  const std::string path = "ram://manager_config/models.config";
  std::string local;
  auto files = FileSystemFor(path, &local);
  ASSERT_TRUE(files.ok());
  ASSERT_TRUE(
      WriteFileAtomically(*files, local, ListOf(ModelOf("a", "/a"))).ok());
  const auto config = ReadModelServerConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model_config_list().config(0).name(), "a");
  const Status missing = ReadModelServerConfig("/nowhere/x").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("/nowhere/x"), std::string::npos);
}

TEST(ModelConfigCheck, EachRuleHasItsText) {
  const struct {
    std::string config;
    const char* message;
  } kRows[] = {
      {ListOf(ModelOf("m", "/a") + ModelOf("m", "/b")),
       "Illegal to list model m multiple times in config list"},
      {ListOf(ModelOf("m", "models/m")),
       "Expected model m to have an absolute path or URI; got "
       "base_path()=models/m"},
      {ListOf(ModelOf("m", "")),
       "Expected model m to have an absolute path or URI; got base_path()="},
      {ListOf(ModelOf("m", "://x")),
       "Expected model m to have an absolute path or URI; got "
       "base_path()=://x"},
      {ListOf(ModelOf("m", "/a", "")),
       "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
       "ModelServerConfig::model_platform, model name is m"},
      {ListOf(ModelOf("m", "/a", "model_type: TENSORFLOW model_platform: 'x'")),
       "Illegal setting both ModelServerConfig::model_type (deprecated) and "
       "ModelServerConfig::model_platform, model name is m"},
      {ListOf(ModelOf("m", "/a", "model_type: OTHER")),
       "ModelServerConfig::model_type choice 2 not supported, model name is m"},
      {ListOf(ModelOf("m", "/a", "model_platform: 'caffe'")),
       "Model m requests unsupported platform caffe"},
      {ListOf(ModelOf("m", "/a\\000b")),
       "The base path of model m has a NUL byte"},
      {"custom_model_config { type_url: 'a/b' }",
       "custom_model_config is not supported: this server has no loader of its "
       "own kind; use model_config_list"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(CheckConfig(ConfigFrom(row.config), {}),
              InvalidArgument(row.message));
  }
}

TEST(ModelConfigCheck, GoodOnesPass) {
  for (const char* path : {"/a", "/", "file:///a", "ram://a"}) {
    EXPECT_EQ(CheckConfig(ConfigFrom(ListOf(ModelOf("m", path))), {}),
              OkStatus())
        << path;
  }
  EXPECT_EQ(CheckConfig(ConfigFrom("model_config_list {}"), {}), OkStatus());
  EXPECT_EQ(CheckConfig({}, {}), OkStatus());
  const Status s =
      CheckConfig(ConfigFrom(ListOf(ModelOf("m", "gs://bucket/m"))), {});
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented) << s;
}

TEST(ModelConfigCheck, APlatformCannotChange) {
  const ModelServerConfig now = ConfigFrom(ListOf(ModelOf("m", "/a")));
  EXPECT_EQ(
      CheckConfig(
          ConfigFrom(ListOf(ModelOf("m", "/a", "model_platform: 'other'"))),
          now),
      InvalidArgument("Illegal to change a model's platform. For model m "
                      "platform was tensorflow and new platform requested is "
                      "other"));
  EXPECT_EQ(
      CheckConfig(
          ConfigFrom(ListOf(ModelOf("m", "/b", "model_type: TENSORFLOW"))),
          now),
      OkStatus());
}

TEST(ModelConfigCheck, OneModelFromFlags) {
  const ModelServerConfig config = ConfigOfOneModel("m", "/models/m");
  EXPECT_EQ(CheckConfig(config, {}), OkStatus());
  EXPECT_EQ(config.model_config_list().config(0).name(), "m");
}

}  // namespace
}  // namespace headrace::serving
