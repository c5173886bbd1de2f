// PredictionService.GetModelMetadata.
#include "serving/answer/answers.h"

namespace headrace::serving {

using tensorflow::serving::GetModelMetadataRequest;
using tensorflow::serving::GetModelMetadataResponse;

Status GetModelMetadata(Models& models, const GetModelMetadataRequest& request,
                        GetModelMetadataResponse* response) {
  constexpr char kSignatures[] = "signature_def";
  if (!request.has_model_spec()) return InvalidArgument("Missing ModelSpec");
  if (request.metadata_field().empty()) {
    return InvalidArgument(
        "GetModelMetadataRequest must specify at least one metadata_field");
  }
  for (const std::string& field : request.metadata_field()) {
    if (field == kSignatures) continue;
    return InvalidArgument("Metadata field ", field, " is not supported");
  }
  HR_ASSIGN_OR_RETURN(const ServablePtr servable,
                      models.Find(request.model_spec()));
  response->mutable_model_spec()->set_name(servable->id().name);
  response->mutable_model_spec()->mutable_version()->set_value(
      servable->id().version);
  tensorflow::serving::SignatureDefMap map;
  *map.mutable_signature_def() = servable->meta_graph().signature_def();
  (*response->mutable_metadata())[kSignatures].PackFrom(map);
  return OkStatus();
}

}  // namespace headrace::serving
