#include "serving/answer/answers.h"

namespace headrace::serving {

void Predict(Models&, const AnswerOptions&, CallPtr,
             const tensorflow::serving::PredictRequest&,
             Done<tensorflow::serving::PredictResponse> done) {
  done(Unimplemented("Predict is not there yet"));
}
void Classify(Models&, const AnswerOptions&, CallPtr,
              const tensorflow::serving::ClassificationRequest&,
              Done<tensorflow::serving::ClassificationResponse> done) {
  done(Unimplemented("Classify is not there yet"));
}
void Regress(Models&, const AnswerOptions&, CallPtr,
             const tensorflow::serving::RegressionRequest&,
             Done<tensorflow::serving::RegressionResponse> done) {
  done(Unimplemented("Regress is not there yet"));
}
void MultiInference(Models&, const AnswerOptions&, CallPtr,
                    const tensorflow::serving::MultiInferenceRequest&,
                    Done<tensorflow::serving::MultiInferenceResponse> done) {
  done(Unimplemented("MultiInference is not there yet"));
}
Status GetModelMetadata(Models&,
                        const tensorflow::serving::GetModelMetadataRequest&,
                        tensorflow::serving::GetModelMetadataResponse*) {
  return Unimplemented("GetModelMetadata is not there yet");
}

}  // namespace headrace::serving
