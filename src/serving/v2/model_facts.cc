#include "serving/v2/model_facts.h"

#include "absl/strings/ascii.h"
#include "headrace/version.h"
#include "serving/v2/datatypes.h"
#include "serving/v2/infer.h"

namespace headrace::serving {
namespace {

using inference::ModelMetadataResponse;
using inference::RepositoryIndexResponse;
using tensorflow::serving::ModelVersionStatus;

constexpr char kPlatform[] = "tensorflow_savedmodel";

// In capitals, as the protocol's are, where it has no name of the type.
std::string NameOfType(DType dtype) {
  const StringView name = DatatypeOf(dtype);
  return name.empty() ? absl::AsciiStrToUpper(DTypeName(dtype))
                      : std::string(name);
}

void TellArgument(
    const Argument& argument,
    const google::protobuf::Map<std::string, tensorflow::TensorInfo>& infos,
    ModelMetadataResponse::TensorMetadata* told) {
  told->set_name(argument.name);
  told->set_datatype(NameOfType(argument.dtype));
  const auto info = infos.find(argument.name);
  if (info == infos.end() || info->second.tensor_shape().unknown_rank()) {
    told->add_shape(-1);
    return;
  }
  for (const auto& d : info->second.tensor_shape().dim()) {
    told->add_shape(d.size());
  }
}

Status TellVersions(Models& models, const std::string& name,
                    ModelMetadataResponse* response) {
  ModelSpec all;
  all.set_name(name);
  GetModelStatusResponse states;
  HR_RETURN_IF_ERROR(models.StatusOf(all, &states));
  const auto& versions = states.model_version_status();
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->state() == ModelVersionStatus::AVAILABLE) {
      response->add_versions(absl::StrCat(it->version()));
    }
  }
  return OkStatus();
}

const char* StateName(ModelVersionStatus::State state) {
  switch (state) {
    case ModelVersionStatus::AVAILABLE:
      return "READY";
    case ModelVersionStatus::LOADING:
      return "LOADING";
    case ModelVersionStatus::UNLOADING:
      return "UNLOADING";
    default:
      return "UNAVAILABLE";
  }
}

std::string ReasonOf(const tensorflow::serving::ModelVersionStatus& status) {
  if (!status.status().error_message().empty()) {
    return status.status().error_message();
  }
  switch (status.state()) {
    case ModelVersionStatus::END:
      return "unloaded";
    case ModelVersionStatus::START:
      return "not loaded yet";
    default:
      return "";
  }
}

void IndexModel(Models& models, const std::string& name, bool ready_only,
                RepositoryIndexResponse* response) {
  ModelSpec all;
  all.set_name(name);
  GetModelStatusResponse states;
  const Status s = models.StatusOf(all, &states);
  if (!s.ok() && !ready_only) {
    auto* told = response->add_models();
    told->set_name(name);
    told->set_state("UNAVAILABLE");
    told->set_reason(std::string(s.message()));
  }
  for (const auto& version : states.model_version_status()) {
    if (ready_only && version.state() != ModelVersionStatus::AVAILABLE) {
      continue;
    }
    auto* told = response->add_models();
    told->set_name(name);
    told->set_version(absl::StrCat(version.version()));
    told->set_state(StateName(version.state()));
    told->set_reason(ReasonOf(version));
  }
}

Status CheckRepositoryName(const std::string& name) {
  if (name.empty()) return OkStatus();
  return InvalidArgument("there is no repository '", name,
                         "': the one there is has no name");
}

Status RefuseParameter(const std::string& name) {
  return InvalidArgument("the parameter '", name, "' is not supported");
}

}  // namespace

inference::ServerMetadataResponse ServerMetadata() {
  inference::ServerMetadataResponse response;
  response.set_name("headrace-serving");
  response.set_version(Version());
  for (const char* extension :
       {"model_repository", "binary_tensor_data", "statistics"}) {
    response.add_extensions(extension);
  }
  return response;
}

StatusOr<bool> ModelReady(InferenceServer& server, StringView name,
                          StringView version) {
  HR_ASSIGN_OR_RETURN(const ModelSpec spec, SpecOfModel(name, version));
  if (server.draining && server.draining()) return false;
  return server.models.FindWaits(spec) || server.models.Find(spec).ok();
}

StatusOr<ModelMetadataResponse> ModelMetadata(InferenceServer& server,
                                              StringView name,
                                              StringView version,
                                              StringView signature) {
  HR_ASSIGN_OR_RETURN(const ModelSpec spec, SpecOfModel(name, version));
  HR_ASSIGN_OR_RETURN(const ServablePtr servable, server.models.Find(spec));
  ModelMetadataResponse response;
  response.set_name(servable->id().name);
  response.set_platform(kPlatform);
  HR_RETURN_IF_ERROR(
      TellVersions(server.models, servable->id().name, &response));
  const Signature* found = servable->signature(signature);
  if (found == nullptr) {
    if (signature.empty()) return response;
    return FailedPrecondition("Serving signature key \"", signature,
                              "\" not found.");
  }
  for (const Argument& a : found->inputs) {
    TellArgument(a, found->def->inputs(), response.add_inputs());
  }
  for (const Argument& a : found->outputs) {
    TellArgument(a, found->def->outputs(), response.add_outputs());
  }
  return response;
}

StatusOr<RepositoryIndexResponse> RepositoryIndex(
    InferenceServer& server, const inference::RepositoryIndexRequest& request) {
  HR_RETURN_IF_ERROR(CheckRepositoryName(request.repository_name()));
  RepositoryIndexResponse response;
  const ModelServerConfig config = server.models.Config();
  for (const auto& model : config.model_config_list().config()) {
    IndexModel(server.models, model.name(), request.ready(), &response);
  }
  return response;
}

Status RepositoryLoad(InferenceServer& server,
                      const inference::RepositoryModelLoadRequest& request) {
  HR_RETURN_IF_ERROR(CheckRepositoryName(request.repository_name()));
  for (const auto& [name, value] : request.parameters()) {
    return RefuseParameter(name);
  }
  return server.models.LoadModel(request.model_name());
}

Status RepositoryUnload(
    InferenceServer& server,
    const inference::RepositoryModelUnloadRequest& request) {
  HR_RETURN_IF_ERROR(CheckRepositoryName(request.repository_name()));
  for (const auto& [name, value] : request.parameters()) {
    // Triton's client always sends it; no model depends on another here.
    if (name == "unload_dependents" &&
        value.parameter_choice_case() ==
            inference::ModelRepositoryParameter::kBoolParam) {
      continue;
    }
    return RefuseParameter(name);
  }
  return server.models.UnloadModel(request.model_name());
}

StatusOr<inference::ModelStatisticsResponse> ModelStatistics(
    InferenceServer& server, StringView name, StringView version) {
  HR_ASSIGN_OR_RETURN(const ModelSpec spec, SpecOfModel(name, version));
  std::optional<int64_t> one;
  if (!name.empty()) {
    // Of a model that was never asked over the protocol: nothing.
    GetModelStatusResponse states;
    HR_RETURN_IF_ERROR(server.models.StatusOf(spec, &states));
  }
  if (spec.version_choice_case() == ModelSpec::kVersionLabel) {
    HR_ASSIGN_OR_RETURN(const ServablePtr servable, server.models.Find(spec));
    one = servable->id().version;
  } else if (!version.empty()) {
    one = spec.version().value();
  }
  inference::ModelStatisticsResponse response;
  server.statistics.Tell(name, one, &response);
  return response;
}

}  // namespace headrace::serving
