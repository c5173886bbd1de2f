// The metrics of answered requests.
#pragma once

#include "serving/answer/observer.h"

namespace headrace::serving {

// Of requests over gRPC.
class GrpcRecorder : public AnswerObserver {
 public:
  void Began(const std::string& model) override;
  void Ended(const std::string& model, const Answered& answered) override;
};

// Of one over REST; `method` as RestOptions has it.
void RecordRest(const ModelSpec& spec, StringView method, const Status& status,
                std::chrono::nanoseconds time);

}  // namespace headrace::serving
