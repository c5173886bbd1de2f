// Who is told of the requests that a server answered, for metrics and logs.
#pragma once

#include <chrono>

#include "serving/models.h"

namespace headrace::serving {

struct Answered {
  // Over gRPC "Predict", "Classify", "Regress", "MultiInference", "SessionRun".
  StringView method;
  // As it was asked for; where it was answered, as it was used.
  const ModelSpec& spec;
  Status status;
  std::chrono::nanoseconds time;
};

// Thread-safe; quick, as it runs within each request.
class AnswerObserver {
 public:
  virtual ~AnswerObserver() = default;
  // A request of this model begins, and ends.
  virtual void Began(const std::string& model) = 0;
  virtual void Ended(const std::string& model, const Answered& answered) = 0;
};

}  // namespace headrace::serving
