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

// Of one over REST.
void RecordRest(const Answered& answered);

}  // namespace headrace::serving
