// What the fronts of the server know of its models.
#pragma once

#include "serving/model/servable.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/model.pb.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace headrace::serving {

using ModelSpec = tensorflow::serving::ModelSpec;
using ModelServerConfig = tensorflow::serving::ModelServerConfig;
using GetModelStatusResponse = tensorflow::serving::GetModelStatusResponse;

// Versions of a model that are remembered once they are over, the newest: who
// makes one each minute must not fill the memory in a year, neither by what is
// kept nor by answers that list it all.
inline constexpr size_t kMostPastVersions = 256;

// Thread-safe.
class Models {
 public:
  virtual ~Models() = default;

  // The version that a request means: who holds it keeps it loaded.
  // InvalidArgument "ModelSpec has no name specified." and "Unrecognized
  // servable version label: L", NotFound "Servable not found for request:
  // Latest(NAME)" and "... Specific(NAME, N)". Takes no lock that a load holds.
  virtual StatusOr<ServablePtr> Find(const ModelSpec& spec) = 0;
  // Whether Find would wait for a load: for threads that must not.
  virtual bool FindWaits(const ModelSpec&) { return false; }

  // The versions of a model that this process has seen, newest first, or the
  // one that the spec names. NotFound where there are none. Labels are not
  // looked at. Of those that are over kMostPastVersions are told.
  virtual Status StatusOf(const ModelSpec& spec,
                          GetModelStatusResponse* response) = 0;

  // Serves these models in place of all present ones; returns once each has a
  // version, or failed. A refused config changes nothing.
  virtual Status Reload(const ModelServerConfig& config) = 0;
  // The config in force.
  virtual ModelServerConfig Config() = 0;

  // Whether every model has a version that is available, but for those that
  // were unloaded by name.
  virtual bool Ready() = 0;

  // Of a model of the config, by name: brings its versions back, or tries those
  // again that failed, and returns once one answers requests, or none will.
  // NotFound where the config has no such model.
  virtual Status LoadModel(const std::string& name) {
    return Unimplemented("loading the model ", name, " by name");
  }
  // No request finds its versions any more, until LoadModel, or until a config
  // without the model was in force.
  virtual Status UnloadModel(const std::string& name) {
    return Unimplemented("unloading the model ", name, " by name");
  }
};

}  // namespace headrace::serving
