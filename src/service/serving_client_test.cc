#include "headrace/serving_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "headrace/serving_server.h"

namespace headrace::tf {
namespace {

namespace fs = std::filesystem;

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

ErrorCode CodeOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return static_cast<ErrorCode>(0);
}

// A server within this program, of golden models.
class ServedHere : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) / ("served" + std::to_string(getpid()));
    fs::create_directories(folder_ / "plain");
    fs::create_directories(folder_ / "examples");
    fs::copy(fs::path(HR_GOLDEN_DIR) / "saved_models/plain",
             folder_ / "plain/4", fs::copy_options::recursive);
    fs::copy(fs::path(HR_GOLDEN_DIR) / "serving/examples",
             folder_ / "examples/5", fs::copy_options::recursive);
    for (const char* name : {"plain", "examples"}) {
      servers_.emplace_back(std::vector<std::string>{
          "--port=" + std::to_string(FreePort()),
          std::string("--model_name=") + name,
          "--model_base_path=" + (folder_ / name).string()});
    }
  }
  void TearDown() override {
    servers_.clear();
    fs::remove_all(folder_);
  }
  ServingClient ClientOf(int i) {
    return ServingClient("127.0.0.1:" +
                         std::to_string(servers_[i].grpc_port()));
  }

  fs::path folder_;
  std::vector<ModelServer> servers_;
};

TEST_F(ServedHere, Predict) {
  const ServingClient client = ClientOf(0);
  const Tensor x = Tensor::From<float>({1, 2});
  const ServedPrediction all = client.Predict({"plain"}, {{"x", x}});
  EXPECT_EQ(all.version, 4);
  EXPECT_EQ(all.signature, "serving_default");
  EXPECT_EQ(all.outputs.size(), 2);
  EXPECT_EQ(all.outputs.at("twice").vector<float>(),
            (std::vector<float>{2, 4}));
  EXPECT_EQ(client.Predict({"plain"}, {{"x", x}}, {"y"}).outputs.size(), 1);
  for (const auto& [model, code] :
       std::vector<std::pair<ServedModel, ErrorCode>>{
           {{"none"}, ErrorCode::kNotFound},
           {{"plain", 7}, ErrorCode::kNotFound},
           {{"plain", {}, "old"}, ErrorCode::kInvalidArgument},
           {{"plain", 4, "old"}, ErrorCode::kInvalidArgument},
           {{"plain", {}, "", "none"}, ErrorCode::kFailedPrecondition}}) {
    EXPECT_EQ(CodeOf([&] { client.Predict(model, {{"x", x}}); }), code);
  }
}

TEST_F(ServedHere, WhatAModelIs) {
  const ServingClient client = ClientOf(0);
  const auto signatures = client.Metadata({"plain"});
  const ServedSignature& signature = signatures.at("serving_default");
  EXPECT_EQ(signature.inputs.at("x").dtype, DType::kFloat32);
  EXPECT_EQ(signature.inputs.at("x").shape, TensorShape({-1}));
  const auto versions = client.Status({"plain"});
  ASSERT_EQ(versions.size(), 1);
  EXPECT_EQ(versions[0].version, 4);
  EXPECT_EQ(versions[0].state, "AVAILABLE");
  EXPECT_TRUE(client.Ready());
  EXPECT_TRUE(client.Ready({"plain"}));
  EXPECT_FALSE(client.Ready({"none"}));
}

TEST_F(ServedHere, Examples) {
  const ServingClient client = ClientOf(1);
  const ServedModel regress = {"examples", {}, "", "regress"};
  EXPECT_EQ(client.Regress(regress, {{{"x", std::vector<float>{4}}},
                                     {{"x", std::vector<float>{-2}}}}),
            (std::vector<float>{4, 1}));
  const auto rows = client.Classify({"examples", {}, "", "classify"},
                                    {{{"x", std::vector<float>{4}}}});
  ASSERT_EQ(rows.size(), 1);
  ASSERT_EQ(rows[0].size(), 2);
  EXPECT_EQ(rows[0][0].label, "small");
  EXPECT_EQ(rows[0][1].score, 10);
  EXPECT_EQ(CodeOf([&] { client.Regress(regress, {}); }),
            ErrorCode::kInvalidArgument);
}

TEST_F(ServedHere, NothingAnswersBehindTheDrain) {
  ServingClientOptions options;
  options.retries = 0;
  const ServingClient client(
      "127.0.0.1:" + std::to_string(servers_[0].grpc_port()), options);
  EXPECT_TRUE(client.Ready());
  servers_[0].Drain();
  EXPECT_FALSE(client.Ready());
  EXPECT_EQ(CodeOf([&] { client.Status({"plain"}); }), ErrorCode::kUnavailable);
}

TEST(ModelServerFlags, AreChecked) {
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {"--no_such_flag"}, {"--port=x"}, {"--version"}, {"--port=8500"}}) {
    EXPECT_EQ(CodeOf([&] { ModelServer server(flags); }),
              ErrorCode::kInvalidArgument)
        << flags[0];
  }
  EXPECT_EQ(CodeOf([] { ModelServer server({"--prefer_tflite_model"}); }),
            ErrorCode::kUnimplemented);
  ServingClientOptions options;
  options.key = "a key";
  EXPECT_EQ(CodeOf([&] { ServingClient client("localhost:1", options); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace headrace::tf
