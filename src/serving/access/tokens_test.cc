#include "serving/access/tokens.h"

#include <gtest/gtest.h>

#include "base/files/files.h"

namespace headrace::serving {
namespace {

Status CheckOne(const Tokens& tokens, StringView authorization) {
  return tokens.Check({authorization});
}

TEST(Tokens, LinesOfAFile) {
  const auto tokens = Tokens::Parse(
      "# two teams\r\n\n  first-token== \t# of the one\r\nsecond\n#third\n");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  for (const char* good :
       {"Bearer first-token==", "bearer second", "BEARER   second "}) {
    EXPECT_TRUE(CheckOne(**tokens, good).ok()) << good;
  }
  for (const char* bad :
       {"", "Bearer", "Bearer ", "Bearer secon", "Bearer secondd", "second",
        "Bearer third", "Bearer #third", "Basic second", "Bearersecond",
        "Bearer second first-token==", "Bearer of", "Bearer\tsecond"}) {
    EXPECT_TRUE(absl::IsUnauthenticated(CheckOne(**tokens, bad))) << bad;
  }
  EXPECT_TRUE(absl::IsUnauthenticated((*tokens)->Check({})));
  EXPECT_TRUE(absl::IsUnauthenticated(
      (*tokens)->Check({"Bearer second", "Bearer second"})));
}

TEST(Tokens, FilesThatAreRefused) {
  for (const std::string& text :
       {std::string(), std::string("# nobody\n\n"), std::string("two words"),
        std::string("a\nb\nc#d\n"), std::string("t\xc3\xb6ken"),
        std::string("a\0b", 3), std::string(8193, 'x')}) {
    const auto tokens = Tokens::Parse(text);
    ASSERT_FALSE(tokens.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(tokens.status()));
  }
  std::string many;
  for (int i = 0; i <= 10000; ++i) absl::StrAppend(&many, "t", i, "\n");
  EXPECT_FALSE(Tokens::Parse(many).ok());
  // The line is named, and its text is not.
  const Status s = Tokens::Parse("a\nsecret words\n").status();
  EXPECT_NE(s.message().find("line 2"), StringView::npos);
  EXPECT_EQ(s.message().find("secret"), StringView::npos);
}

TEST(Tokens, AFileThatChangesIsReadAgain) {
  const std::string path = ::testing::TempDir() + "tokens_test.txt";
  const auto write = [&](StringView text) {
    std::string local;
    ASSERT_TRUE(
        WriteFileAtomically(*FileSystemFor(path, &local), path, text).ok());
  };
  write("one\n");
  auto file = OpenTokenFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::string> log;
  const auto look = [&] {
    (*file)->Look([&](const std::string& text) { log.push_back(text); });
  };
  const auto knows = [&](StringView value) {
    return CheckOne(*(*file)->now(), value).ok();
  };
  look();
  EXPECT_TRUE(log.empty());
  write("two\n");
  look();
  EXPECT_TRUE(knows("Bearer two"));
  EXPECT_FALSE(knows("Bearer one"));
  EXPECT_EQ(log.size(), 1);
  // Broken, and gone: the old tokens stay, and each is told once.
  write("two words\n");
  look();
  look();
  EXPECT_TRUE(knows("Bearer two"));
  ASSERT_EQ(log.size(), 2);
  EXPECT_NE(log[1].find("line 1"), std::string::npos) << log[1];
  remove(path.c_str());
  look();
  look();
  EXPECT_TRUE(knows("Bearer two"));
  EXPECT_EQ(log.size(), 3);
  write("three\n");
  look();
  EXPECT_TRUE(knows("Bearer three"));
  EXPECT_EQ(log.size(), 4);
  EXPECT_FALSE(OpenTokenFile(path + ".none").ok());
  EXPECT_FALSE(OpenTokenFile(::testing::TempDir()).ok());
  remove(path.c_str());
}

TEST(Tokens, WhatNeedsNone) {
  EXPECT_TRUE(RpcIsOpenToAll("/grpc.health.v1.Health/Check"));
  EXPECT_TRUE(RpcIsOpenToAll("/inference.GRPCInferenceService/ServerLive"));
  EXPECT_TRUE(RpcIsOpenToAll("/inference.GRPCInferenceService/ServerReady"));
  EXPECT_FALSE(RpcIsOpenToAll("/inference.GRPCInferenceService/ModelInfer"));
  EXPECT_FALSE(RpcIsOpenToAll("/tensorflow.serving.PredictionService/Predict"));
  EXPECT_FALSE(RpcIsOpenToAll(""));
  EXPECT_TRUE(HttpIsOpenToAll("GET", "/v2/health/live"));
  EXPECT_TRUE(HttpIsOpenToAll("GET", "/v2/health/ready"));
  EXPECT_TRUE(HttpIsOpenToAll("OPTIONS", "/v1/models/m:predict"));
  for (const char* path : {"/v2/health/live/", "/v2/health", "/V2/HEALTH/LIVE",
                           "/v2/health/%6cive", "/v1/models/m", ""}) {
    EXPECT_FALSE(HttpIsOpenToAll("GET", path)) << path;
  }
  EXPECT_FALSE(HttpIsOpenToAll("POST", "/v2/health/live"));
}

}  // namespace
}  // namespace headrace::serving
