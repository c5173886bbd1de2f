// One version as if it were all models: for requests to a version that does not
// serve yet.
#pragma once

#include <utility>

#include "serving/models.h"

namespace headrace::serving {

class OneVersion : public Models {
 public:
  explicit OneVersion(ServablePtr version) : version_(std::move(version)) {}

  // Whatever the spec says.
  StatusOr<ServablePtr> Find(const ModelSpec&) override { return version_; }
  Status StatusOf(const ModelSpec&, GetModelStatusResponse*) override {
    return Unimplemented("the states of a version by itself");
  }
  Status Reload(const ModelServerConfig&) override {
    return Unimplemented("reloading a version by itself");
  }
  ModelServerConfig Config() override { return {}; }
  bool Ready() override { return true; }

 private:
  const ServablePtr version_;
};

}  // namespace headrace::serving
