#include "serving/start/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace headrace::serving {
namespace {

struct ParsedFlags {
  Status status;
  Flags flags;
  std::vector<std::string> unknown;
};

ParsedFlags Parsed(const std::vector<std::string>& args) {
  ParsedFlags p;
  p.status = ParseFlags(args, &p.flags, &p.unknown);
  return p;
}

TEST(ServingFlags, StockDefaults) {
  const ParsedFlags p = Parsed({});
  ASSERT_TRUE(p.status.ok());
  EXPECT_EQ(p.flags.port, 8500);
  EXPECT_EQ(p.flags.rest_api_port, 0);
  EXPECT_EQ(p.flags.rest_api_timeout_in_ms, 30000);
  EXPECT_EQ(p.flags.model_name, "default");
  EXPECT_EQ(p.flags.file_system_poll_wait_seconds, 1);
  EXPECT_EQ(p.flags.max_num_load_retries, 5);
  EXPECT_EQ(p.flags.load_retry_interval_micros, 60000000);
}

TEST(ServingFlags, OfTheStockImage) {
  const ParsedFlags p =
      Parsed({"--port=8500", "--rest_api_port=8501", "--model_name=model",
              "--model_base_path=/models/model", "--enable_batching"});
  ASSERT_TRUE(p.status.ok()) << p.status;
  EXPECT_EQ(p.flags.rest_api_port, 8501);
  EXPECT_EQ(p.flags.model_base_path, "/models/model");
  EXPECT_TRUE(p.flags.enable_batching);
  EXPECT_TRUE(p.unknown.empty());
}

TEST(ServingFlags, UnknownOnesAreTold) {
  const ParsedFlags p = Parsed({"--no_such_flag=1", "word", "--port=1"});
  ASSERT_TRUE(p.status.ok());
  EXPECT_EQ(p.unknown, (std::vector<std::string>{"--no_such_flag=1", "word"}));
  EXPECT_EQ(p.flags.port, 1);
}

TEST(ServingFlags, LibrariesOfOpsAddUp) {
  const ParsedFlags p =
      Parsed({"--op_library=/a.so", "--op_library=/b.so,/c.so"});
  ASSERT_TRUE(p.status.ok());
  EXPECT_EQ(p.flags.op_library, "/a.so,/b.so,/c.so");
}

TEST(ServingFlags, ValuesThatDoNotParse) {
  for (const char* arg : {"--port=x", "--port=", "--port", "--port=99999999999",
                          "--enable_batching=perhaps", "--model_name"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parsed({arg}).status)) << arg;
  }
}

TEST(ServingFlags, WhatIsNotThereIsRefusedButForItsDefault) {
  EXPECT_TRUE(Parsed({"--prefer_tflite_model=false"}).status.ok());
  EXPECT_TRUE(Parsed({"--enable_profiler=true"}).status.ok());
  for (const char* arg :
       {"--prefer_tflite_model", "--xla_cpu_compilation_enabled=true",
        "--use_alts_credentials", "--mixed_precision=bfloat16"}) {
    EXPECT_TRUE(absl::IsUnimplemented(Parsed({arg}).status)) << arg;
  }
}

TEST(ServingFlags, TheDocsListThem) {
  std::ifstream file(HR_GOLDEN_DIR "/../../docs/serving.md");
  const std::string docs((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(docs.find(FlagsTable()), std::string::npos) << FlagsTable();
}

TEST(ServingFlags, TheImagesVariables) {
  setenv("MODEL_NAME", "half", 1);
  setenv("MODEL_BASE_PATH", "/models", 1);
  EXPECT_EQ(Parsed({}).flags.model_base_path, "/models/half");
  EXPECT_EQ(Parsed({}).flags.model_name, "half");
  EXPECT_EQ(Parsed({"--model_base_path=/x"}).flags.model_name, "default");
  unsetenv("MODEL_NAME");
  unsetenv("MODEL_BASE_PATH");
}

}  // namespace
}  // namespace headrace::serving
