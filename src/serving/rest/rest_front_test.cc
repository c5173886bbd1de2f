#include "serving/rest/rest_front.h"

#include <gtest/gtest.h>

#include <thread>

#include "serving/http/test_client.h"
#include "serving/model/test_models.h"

namespace headrace::serving {
namespace {

constexpr char kPlain[] = HR_GOLDEN_DIR "/saved_models/plain";

// Runs nothing before `stop` of its call: then it says what that says.
class StuckRunner : public Runner {
 public:
  void Run(CallPtr call, Tensors, RunDone done) override {
    std::thread([call, done] {
      while (!call->stop().cancelled()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      done(call->stop().status());
    }).detach();
  }
};

class FakeModels : public Models {
 public:
  FakeModels() {
    auto plain = Servable::Load({"plain", 3}, kPlain, {});
    EXPECT_TRUE(plain.ok()) << plain.status();
    plain_ = *plain;
    ServableOptions options;
    options.wrap = [](RunnerPtr, const Signature&, absl::Span<const int>) {
      return std::make_shared<StuckRunner>();
    };
    stuck_ = *Servable::Load({"stuck", 1}, kPlain, options);
    auto defaults =
        Servable::Load({"defaults", 1}, WriteModelWithDefault(), {});
    EXPECT_TRUE(defaults.ok()) << defaults.status();
    defaults_ = *defaults;
  }
  StatusOr<ServablePtr> Find(const ModelSpec& spec) override {
    if (spec.name() == "plain") return plain_;
    if (spec.name() == "stuck") return stuck_;
    if (spec.name() == "defaults") return defaults_;
    return NotFound("Servable not found for request: Latest(", spec.name(),
                    ")");
  }
  Status StatusOf(const ModelSpec& spec,
                  GetModelStatusResponse* response) override {
    if (spec.name() != "plain") {
      return NotFound("Could not find any versions of model ", spec.name());
    }
    auto* v = response->add_model_version_status();
    v->set_version(3);
    v->set_state(tensorflow::serving::ModelVersionStatus::AVAILABLE);
    v->mutable_status();
    return OkStatus();
  }
  Status Reload(const ModelServerConfig&) override {
    return Unimplemented("Reload");
  }
  ModelServerConfig Config() override { return {}; }
  bool Ready() override { return true; }

 private:
  ServablePtr plain_, stuck_, defaults_;
};

struct TestFront {
  explicit TestFront(RestOptions options = {}) {
    options.threads = 2;
    auto started = RestFront::Start(models, {}, options);
    EXPECT_TRUE(started.ok()) << started.status();
    front = *std::move(started);
  }
  TestClient::Answer Ask(const std::string& text) {
    return TestClient(front->port()).Ask(text);
  }
  TestClient::Answer Predict(StringView body) {
    return Ask(PostText("/v1/models/plain:predict", body));
  }
  FakeModels models;
  std::unique_ptr<RestFront> front;
};

TEST(RestFront, Predict) {
  TestFront front;
  auto answer = front.Predict("{\"instances\": [1.0, 2.5]}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body,
            "{\n    \"predictions\": [\n        {\n            \"twice\": "
            "2.0,\n            \"y\": 4.0\n        },\n        {\n            "
            "\"twice\": 5.0,\n            \"y\": 8.0\n        }\n    ]\n}");
  EXPECT_NE(answer.head.find("Content-Type: application/json"),
            std::string::npos);
  answer = front.Predict("{\"inputs\": [1.0, 2.5]}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body,
            "{\n    \"outputs\": {\n        \"twice\": [2.0, 5.0],\n        "
            "\"y\": [4.0, 8.0]\n    }\n}");
}

TEST(RestFront, PredictErrors) {
  TestFront front;
  const struct {
    const char *path, *body;
    int status;
    const char* error;
  } rows[] = {
      {"/v1/models/plain:predict", "", 400,
       "JSON Parse error: The document is empty"},
      {"/v1/models/plain:predict", "{\"instances\": [1,]}", 400,
       "JSON Parse error: Invalid value. at offset: 17"},
      // What is wrong in the text comes before what is wrong with the model.
      {"/v1/models/nope:predict", "{", 400,
       "JSON Parse error: Missing a name for object member. at offset: 1"},
      {"/v1/models/nope:predict", "{}", 404,
       "Servable not found for request: Latest(nope)"},
      {"/v1/models/plain:predict",
       "{\"signature_name\": \"s\", \"instances\": [1]}", 400,
       "Serving signature name: \\\"s\\\" not found in signature def"},
      {"/v1/models/plain:predict", "{\"instances\": [\"x\"]}", 400,
       "Failed to process element: 0 of 'instances' list. Error: "
       "INVALID_ARGUMENT: JSON Value: \\\"x\\\" Type: String is not of "
       "expected type: float"},
      {"/v1/models/plain:predict/x", "{}", 400,
       "Malformed request: POST /v1/models/plain:predict/x"},
      {"/v1/models/plain/versions/99999999999999999999:predict", "{}", 400,
       "Failed to convert version: 99999999999999999999 to numeric."},
  };
  for (const auto& row : rows) {
    const auto answer = front.Ask(PostText(row.path, row.body));
    EXPECT_EQ(answer.status, row.status);
    EXPECT_EQ(answer.body,
              absl::StrCat("{\n    \"error\": \"", row.error, "\"\n}"));
  }
}

TEST(RestFront, StatusAndOtherPaths) {
  TestFront front;
  auto answer = front.Ask("GET /v1/models/plain HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body,
            "{\n \"model_version_status\": [\n  {\n   \"version\": \"3\",\n   "
            "\"state\": \"AVAILABLE\",\n   \"status\": {\n    \"error_code\": "
            "\"OK\",\n    \"error_message\": \"\"\n   }\n  }\n ]\n}\n");
  EXPECT_EQ(front.Ask("GET /v1/models/nope HTTP/1.1\r\n\r\n").status, 404);
  answer = front.Ask("GET /v1/models HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("Missing model name in request."),
            std::string::npos);
  answer = front.Ask("GET /elsewhere HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.head.find("text/html"), std::string::npos);
}

TEST(RestFront, Cors) {
  const std::string ask =
      "OPTIONS /v1/models/plain:predict HTTP/1.1\r\nOrigin: ";
  for (const bool cors : {false, true}) {
    RestOptions options;
    options.cors = cors;
    options.extra.push_back([](const HttpRequest& request, HttpResponder to) {
      if (request.path != "/extra") return false;
      to.Send({});
      return true;
    });
    TestFront front(options);
    const auto answer = front.Ask(ask + "https://x\r\n\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(
        answer.head.find("Access-Control-Allow-Origin: *") != std::string::npos,
        cors);
    EXPECT_EQ(front.Ask(ask + "null\r\n\r\n").status, 400);
    for (const auto& other :
         {front.Predict("{\"instances\": [1]}"), front.Predict("nonsense"),
          front.Ask("GET /extra HTTP/1.1\r\n\r\n"),
          front.Ask("GET /elsewhere HTTP/1.1\r\n\r\n")}) {
      EXPECT_EQ(other.head.find("Access-Control") != std::string::npos, cors)
          << other.head;
    }
  }
}

// A model whose signature has a default for one of its inputs.
TEST(RestFront, DefaultsStandInForInputs) {
  TestFront front;
  const auto ask = [&](StringView body) {
    return front.Ask(PostText("/v1/models/defaults:predict", body));
  };
  const struct {
    const char *body, *answer;
  } rows[] = {
      {"{\"inputs\": {\"x\": [1, 2], \"y\": [3, 4]}}", "4.0,6.0"},
      {"{\"inputs\": {\"x\": [1, 2]}}", "11.0,22.0"},
      {"{\"instances\": [{\"x\": 1}, {\"x\": 2}]}", "11.0,22.0"},
      {"{\"instances\": [{\"x\": 1, \"y\": 5}, {\"x\": 2, \"y\": 6}]}",
       "6.0,8.0"},
      {"{\"inputs\": {\"y\": [1, 2]}}",
       "Missing named input: x in 'inputs' object."},
      {"{\"instances\": [{\"x\": 1}, {\"y\": 2}]}",
       "JSON object: does not have named input: x"},
      {"{\"instances\": [{\"x\": 1}, {\"x\": 1, \"y\": 2}]}",
       "keys must be equal to: x,y"},
      {"{\"instances\": [{\"y\": 2}]}", "keys must be equal to: x,y"},
  };
  for (const auto& row : rows) {
    std::string body = ask(row.body).body;
    std::erase_if(body, [](char c) { return c == '\n' || c == ' '; });
    std::string wanted = row.answer;
    std::erase(wanted, ' ');
    EXPECT_NE(body.find(wanted), std::string::npos) << row.body << body;
  }
}

TEST(RestFront, ExtraPathsComeFirst) {
  RestOptions options;
  options.extra.push_back([](const HttpRequest& request, HttpResponder to) {
    if (request.path != "/extra") return false;
    HttpResponse response;
    response.body = "more";
    to.Send(std::move(response));
    return true;
  });
  TestFront front(options);
  EXPECT_EQ(front.Ask("GET /extra HTTP/1.1\r\n\r\n").body, "more");
  EXPECT_EQ(front.Predict("{\"instances\": [1, 2]}").status, 200);
}

TEST(RestFront, TimeoutAndClosedConnectionStopTheRun) {
  std::atomic<int> cancelled{0}, late{0};
  RestOptions options;
  options.timeout_ms = 100;
  options.answered = [&](const Answered& a) {
    if (absl::IsCancelled(a.status)) ++cancelled;
    if (absl::IsDeadlineExceeded(a.status)) ++late;
  };
  const std::string post =
      PostText("/v1/models/stuck:predict", "{\"instances\": [1]}");
  {
    TestFront front(options);
    EXPECT_EQ(front.Ask(post).status, 504);
    EXPECT_EQ(late, 1);
  }
  options.timeout_ms = 600000;
  TestFront front(options);
  TestClient(front.front->port()).Say(post);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (cancelled == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cancelled, 1);
}

TEST(RestFront, LimitOfBodies) {
  RestOptions options;
  options.max_body_bytes = 100;
  TestFront front(options);
  EXPECT_EQ(front.Predict(std::string(101, ' ')).status, 413);
  options.max_body_bytes = 0;
  FakeModels models;
  EXPECT_FALSE(RestFront::Start(models, {}, options).ok());
}

}  // namespace
}  // namespace headrace::serving
