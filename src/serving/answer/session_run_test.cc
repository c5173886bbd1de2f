#include <gtest/gtest.h>

#include "serving/answer/answers.h"
#include "serving/fixed_models.h"
#include "serving/model/test_models.h"
#include "tensor/tensor_proto.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::SessionRunRequest;
using tensorflow::serving::SessionRunResponse;

class SessionRunTest : public testing::Test {
 protected:
  void SetUp() override {
    Load("plain", HR_GOLDEN_DIR "/saved_models/plain");
    Load("session", HR_GOLDEN_DIR "/saved_models/session");
    Load("tables", HR_GOLDEN_DIR "/saved_models/tables");
    Load("sum", WriteModelWithDefault());
  }
  void Load(const std::string& name, const std::string& folder) {
    ServableOptions options;
    options.session = true;
    auto loaded = Servable::Load({name, 3}, folder, options);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    models_.Add(*loaded);
    servables_[name] = *loaded;
  }
  StatusOr<SessionRunResponse> Run(const SessionRunRequest& request,
                                   int64_t most_bytes = 0) {
    AnswerOptions options;
    options.max_request_memory_bytes = most_bytes;
    return SessionRun(models_, options, std::make_shared<Call>(), request);
  }
  static void Feed(const std::string& name, std::vector<float> values,
                   SessionRunRequest* request) {
    auto* feed = request->add_feed();
    feed->set_name(name);
    EXPECT_TRUE(
        TensorToProto(Tensor::Vector<float>(values), feed->mutable_tensor())
            .ok());
  }
  static std::vector<float> Values(const SessionRunResponse& response, int i) {
    const Tensor t = *TensorFromProto(response.tensor(i).tensor());
    const auto s = t.span<float>();
    return {s.begin(), s.end()};
  }
  static SessionRunRequest SumRequest() {
    SessionRunRequest request;
    request.mutable_model_spec()->set_name("sum");
    Feed("x:0", {1, 2}, &request);
    Feed("y", {3, 4}, &request);
    request.add_fetch("sum:0");
    return request;
  }

  FixedModels models_;
  std::map<std::string, ServablePtr> servables_;
};

TEST_F(SessionRunTest, FeedsAndFetchesByTheNamesOfTensors) {
  SessionRunRequest request = SumRequest();
  request.add_fetch("x");
  const auto response = Run(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->tensor_size(), 2);
  EXPECT_EQ(response->tensor(0).name(), "sum:0");
  EXPECT_EQ(Values(*response, 0), (std::vector<float>{4, 6}));
  EXPECT_EQ(response->tensor(1).name(), "x");
  EXPECT_EQ(Values(*response, 1), (std::vector<float>{1, 2}));
  EXPECT_EQ(response->model_spec().name(), "sum");
  EXPECT_EQ(response->model_spec().version().value(), 3);
  EXPECT_EQ(response->model_spec().signature_name(), "");
}

TEST_F(SessionRunTest, AnyTensorCanBeFedAndNodesCanBeTargets) {
  SessionRunRequest request = SumRequest();
  request.clear_feed();
  Feed("sum:0", {5}, &request);
  request.clear_fetch();
  request.add_fetch("sum:0");
  auto response = Run(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(Values(*response, 0), std::vector<float>{5});
  request = SumRequest();
  request.clear_fetch();
  request.add_target("sum");
  response = Run(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->tensor_size(), 0);
}

// Models of both kinds keep their variables: the same as by signatures.
TEST_F(SessionRunTest, ModelsWithVariables) {
  for (const bool alias : {false, true}) {
    SessionRunRequest request;
    request.mutable_model_spec()->set_name("plain");
    request.set_tensor_name_is_alias(alias);
    const auto& def = *servables_["plain"]->signature("serving_default")->def;
    Feed(alias ? "x" : def.inputs().at("x").name(), {1, 2}, &request);
    request.add_fetch(alias ? "y" : def.outputs().at("y").name());
    const auto response = Run(request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(Values(*response, 0), (std::vector<float>{4, 7}));
  }
  SessionRunRequest request;
  request.mutable_model_spec()->set_name("session");
  request.mutable_model_spec()->set_signature_name("steps");
  request.set_tensor_name_is_alias(true);
  Feed("a b", {1, 2}, &request);
  request.add_fetch("y");
  const auto response = Run(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(Values(*response, 0), (std::vector<float>{109, 117}));
}

TEST_F(SessionRunTest, Errors) {
  struct Row {
    std::function<void(SessionRunRequest&)> change;
    absl::StatusCode code;
    std::string text;
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto not_found = absl::StatusCode::kNotFound;
  const Row rows[] = {
      {[](auto& r) { r.clear_model_spec(); }, invalid, "Missing ModelSpec"},
      {[](auto& r) { r.mutable_model_spec()->set_name("none"); }, not_found,
       "Servable not found for request: Latest(none)"},
      {[](auto& r) { r.clear_fetch(); }, invalid,
       "Must specify at least one target to fetch or execute."},
      {[](auto& r) { r.add_fetch("nowhere:0"); }, not_found,
       "FetchOutputs node nowhere:0: not found"},
      {[](auto& r) { r.add_fetch("sum:1"); }, invalid,
       "FetchOutputs sum:1: output index too large, must be < 1"},
      {[](auto& r) { r.add_fetch("sum:-1"); }, invalid, "FetchOutputs sum:-1"},
      {[](auto& r) { r.add_target("nowhere"); }, not_found,
       "PruneForTargets: Some target nodes not found: nowhere "},
      {[](auto& r) { Feed("nowhere", {1}, &r); }, not_found,
       "FeedInputs: unable to find feed output nowhere"},
      {[](auto& r) { Feed("x:7", {1}, &r); }, invalid,
       "FeedInputs: x:7 should have output index < 1"},
      {[](auto& r) { Feed("x:0", {1}, &r); }, invalid,
       "Endpoint \"x:0\" fed more than once."},
      {[](auto& r) {
         auto* dim =
             r.mutable_feed(0)->mutable_tensor()->mutable_tensor_shape();
         dim->mutable_dim(0)->set_size(-3);
       },
       invalid, "tensor parsing error: x:0"},
      {[](auto& r) {
         r.mutable_feed(0)->mutable_tensor()->set_dtype(tensorflow::DT_INT32);
       },
       invalid, ""},
      {[](auto& r) { r.mutable_feed()->DeleteSubrange(1, 1); }, invalid,
       "You must feed a value for placeholder tensor 'y' with dtype float"},
      {[](auto& r) { r.set_tensor_name_is_alias(true); }, invalid,
       "tensor alias not found in signature: x:0"},
      {[](auto& r) {
         r.mutable_options()->set_trace_level(
             tensorflow::RunOptions::FULL_TRACE);
       },
       absl::StatusCode::kUnimplemented, "RunOptions.trace_level"},
  };
  for (const Row& row : rows) {
    SessionRunRequest request = SumRequest();
    row.change(request);
    const Status s = Run(request).status();
    EXPECT_EQ(s.code(), row.code) << row.text << ": " << s;
    EXPECT_EQ(s.message().substr(0, row.text.size()), row.text) << s;
  }
  EXPECT_TRUE(Run(SumRequest()).ok());
}

TEST_F(SessionRunTest, ModelsThatAreNotLoadedForSessions) {
  models_.Add(*Servable::Load({"sum", 3}, WriteModelWithDefault(), {}));
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(SumRequest()).status()));
}

TEST_F(SessionRunTest, TensorsBeyondTheLimitOfARequest) {
  SessionRunRequest request = SumRequest();
  auto* tensor = request.mutable_feed(0)->mutable_tensor();
  tensor->mutable_tensor_shape()->mutable_dim(0)->set_size(1 << 20);
  tensor->clear_tensor_content();
  tensor->add_float_val(1);
  const Status s = Run(request, 1 << 20).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
  EXPECT_NE(s.message().find("--max_request_memory_bytes"), std::string::npos);
  EXPECT_TRUE(Run(SumRequest(), 1 << 20).ok());
}

}  // namespace
}  // namespace headrace::serving
