// A client of model servers over gRPC, TensorFlow Serving's protocol. Link with
// headrace::serving, which alone needs gRPC.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::tf {

struct ServingClientOptions {
  // Of a call, all its tries together; zero or less: no limit.
  std::chrono::nanoseconds timeout = std::chrono::minutes(1);
  // Sent as "authorization: Bearer TOKEN"; "" is none.
  std::string token;
  // With TLS: the certificates that the server's is checked against, in place
  // of the system's, and the client's own with its key: PEM texts.
  bool tls = false;
  std::string ca_certificates;
  std::string certificate;
  std::string key;
  // Further tries, with growing waits, after kUnavailable.
  int retries = 3;
};

// Which model answers: the newest version unless a version or a label is given.
struct ServedModel {
  std::string name;
  std::optional<int64_t> version = {};
  std::string label = "";
  std::string signature = "";  // "" is "serving_default"
};

struct ServedPrediction {
  std::map<std::string, Tensor> outputs;
  int64_t version = 0;  // the one that answered
  std::string signature;
};

// An example for Classify and Regress: the values of its features.
using ServedExample =
    std::map<std::string, std::variant<std::vector<float>, std::vector<int64_t>,
                                       std::vector<std::string>>>;

struct ServedClass {
  std::string label;
  float score = 0;
};

struct ServedTensorInfo {
  DType dtype = DType::kInvalid;
  TensorShape shape;
};

struct ServedSignature {
  std::map<std::string, ServedTensorInfo> inputs;
  std::map<std::string, ServedTensorInfo> outputs;
  std::string method_name;
};

struct ServedVersion {
  int64_t version = 0;
  std::string state;  // START, LOADING, AVAILABLE, UNLOADING or END
  // 0, or the number of the ErrorCode of what failed, and its text.
  int code = 0;
  std::string message;
};

// Threads may share a client. All calls throw Error: what the server says, in
// its words; kUnavailable where it cannot be reached, kDeadlineExceeded after
// `timeout`, kDataLoss for answers that hold no tensors.
class HR_API ServingClient {
 public:
  // "HOST:PORT" or "unix:PATH". Nothing is sent before the first call.
  explicit ServingClient(const std::string& address,
                         const ServingClientOptions& options = {});
  ~ServingClient();
  ServingClient(ServingClient&&) noexcept;
  ServingClient& operator=(ServingClient&&) noexcept;

  // `outputs` names those that are wanted; none: all.
  ServedPrediction Predict(const ServedModel& model,
                           const std::map<std::string, Tensor>& inputs,
                           const std::vector<std::string>& outputs = {}) const;
  // A list of classes an example.
  std::vector<std::vector<ServedClass>> Classify(
      const ServedModel& model,
      const std::vector<ServedExample>& examples) const;
  // A value an example.
  std::vector<float> Regress(const ServedModel& model,
                             const std::vector<ServedExample>& examples) const;
  std::map<std::string, ServedSignature> Metadata(
      const ServedModel& model) const;
  // All versions that the server knows of, or the one that `model` names.
  std::vector<ServedVersion> Status(const ServedModel& model) const;
  // Whether the server takes calls (gRPC's health service); asked once, and
  // false where it cannot be reached.
  bool Ready() const;
  // Whether a version of the model is available.
  bool Ready(const ServedModel& model) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::tf
