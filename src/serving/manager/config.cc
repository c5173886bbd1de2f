#include "serving/manager/config.h"

#include <map>
#include <set>

#include "base/files/file_system.h"
#include "serving/proto_file.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::ModelConfig;
using tensorflow::serving::ModelConfigList;
using tensorflow::serving::ModelServerConfig;
using Platforms = std::map<StringView, StringView>;  // by model

// What servers before the field model_platform took is still taken.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
int TypeOf(const ModelConfig& model) { return model.model_type(); }
#pragma GCC diagnostic pop

StatusOr<StringView> PlatformOf(const ModelConfig& model) {
  constexpr char kBoth[] =
      "Illegal setting both ModelServerConfig::model_type (deprecated) and "
      "ModelServerConfig::model_platform, model name is ";
  constexpr char kNeither[] =
      "Illegal setting neither ModelServerConfig::model_type (deprecated) nor "
      "ModelServerConfig::model_platform, model name is ";
  const StringView platform = model.model_platform();
  switch (TypeOf(model)) {
    case tensorflow::serving::MODEL_TYPE_UNSPECIFIED:
      if (platform.empty()) return InvalidArgument(kNeither, model.name());
      return platform;
    case tensorflow::serving::TENSORFLOW:
      if (!platform.empty()) return InvalidArgument(kBoth, model.name());
      return StringView(kTensorFlowPlatform);
    default:
      return InvalidArgument("ModelServerConfig::model_type choice ",
                             TypeOf(model), " not supported, model name is ",
                             model.name());
  }
}

Status CheckBasePath(const ModelConfig& model) {
  const StringView path = model.base_path();
  const size_t scheme = path.find("://");
  const bool uri = scheme != StringView::npos && scheme != 0;
  if (!uri && (path.empty() || path[0] != '/')) {
    return InvalidArgument(
        "Expected model ", model.name(),
        " to have an absolute path or URI; got base_path()=", path);
  }
  if (path.find('\0') != StringView::npos) {
    return InvalidArgument("The base path of model ", model.name(),
                           " has a NUL byte");
  }
  std::string local;
  return FileSystemFor(path, &local).status();
}

Status CheckModel(const ModelConfig& model) {
  HR_RETURN_IF_ERROR(CheckBasePath(model));
  HR_ASSIGN_OR_RETURN(const StringView platform, PlatformOf(model));
  if (platform != kTensorFlowPlatform) {
    return InvalidArgument("Model ", model.name(),
                           " requests unsupported platform ", platform);
  }
  return OkStatus();
}

// Those that can be told.
Platforms PlatformsOf(const ModelConfigList& models) {
  Platforms platforms;
  for (const ModelConfig& m : models.config()) {
    if (const auto p = PlatformOf(m); p.ok()) platforms[m.name()] = *p;
  }
  return platforms;
}

Status CheckNoPlatformChanges(const ModelConfigList& models,
                              const ModelConfigList& current) {
  const Platforms now = PlatformsOf(current);
  for (const auto& [name, platform] : PlatformsOf(models)) {
    auto it = now.find(name);
    if (it == now.end() || it->second == platform) continue;
    return InvalidArgument("Illegal to change a model's platform. For model ",
                           name, " platform was ", it->second,
                           " and new platform requested is ", platform);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ModelServerConfig> ParseModelServerConfig(const std::string& text,
                                                   StringView file) {
  ModelServerConfig config;
  HR_RETURN_IF_ERROR(ReadProtoConfig(text, file, &config));
  return config;
}

StatusOr<ModelServerConfig> ReadModelServerConfig(const std::string& path) {
  ModelServerConfig config;
  HR_RETURN_IF_ERROR(ReadProtoFile(path, &config));
  return config;
}

Status CheckConfig(const ModelServerConfig& config,
                   const ModelServerConfig& current) {
  if (config.config_case() == ModelServerConfig::kCustomModelConfig) {
    return InvalidArgument(
        "custom_model_config is not supported: this server has no loader of "
        "its own kind; use model_config_list");
  }
  const ModelConfigList& models = config.model_config_list();
  std::set<StringView> names;
  for (const ModelConfig& m : models.config()) {
    if (!names.insert(m.name()).second) {
      return InvalidArgument("Illegal to list model ", m.name(),
                             " multiple times in config list");
    }
  }
  HR_RETURN_IF_ERROR(
      CheckNoPlatformChanges(models, current.model_config_list()));
  for (const ModelConfig& m : models.config()) {
    HR_RETURN_IF_ERROR(CheckModel(m));
  }
  return OkStatus();
}

ModelServerConfig ConfigOfOneModel(const std::string& name,
                                   const std::string& base_path) {
  ModelServerConfig config;
  ModelConfig* model = config.mutable_model_config_list()->add_config();
  model->set_name(name);
  model->set_base_path(base_path);
  model->set_model_platform(kTensorFlowPlatform);
  return config;
}

}  // namespace headrace::serving
