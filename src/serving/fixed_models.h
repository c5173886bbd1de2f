// For tests: models that are simply there.
#pragma once

#include <map>

#include "serving/models.h"

namespace headrace::serving {

class FixedModels : public Models {
 public:
  void Add(ServablePtr servable) {
    by_name_[servable->id().name] = std::move(servable);
  }

  StatusOr<ServablePtr> Find(const ModelSpec& spec) override {
    if (spec.name().empty()) {
      return InvalidArgument("ModelSpec has no name specified.");
    }
    auto it = by_name_.find(spec.name());
    if (it == by_name_.end()) {
      return NotFound("Servable not found for request: Latest(", spec.name(),
                      ")");
    }
    return it->second;
  }
  Status StatusOf(const ModelSpec& spec,
                  GetModelStatusResponse* response) override {
    if (!by_name_.contains(spec.name())) {
      return NotFound("Could not find any versions of model ", spec.name());
    }
    auto* status = response->add_model_version_status();
    status->set_version(by_name_[spec.name()]->id().version);
    status->set_state(tensorflow::serving::ModelVersionStatus::AVAILABLE);
    return OkStatus();
  }
  Status Reload(const ModelServerConfig& config) override {
    config_ = config;
    if (on_reload) on_reload();
    return OkStatus();
  }
  ModelServerConfig Config() override { return config_; }
  bool Ready() override { return ready; }

  std::atomic<bool> ready{true};
  std::function<void()> on_reload;

 private:
  std::map<std::string, ServablePtr> by_name_;
  ModelServerConfig config_;
};

}  // namespace headrace::serving
