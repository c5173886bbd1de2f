// Which models a server serves: reading and checking its config.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow_serving/config/model_server_config.pb.h"

namespace headrace::serving {

inline constexpr char kTensorFlowPlatform[] = "tensorflow";

// Errors of proto_file.h.
StatusOr<tensorflow::serving::ModelServerConfig> ParseModelServerConfig(
    const std::string& text, StringView file);
StatusOr<tensorflow::serving::ModelServerConfig> ReadModelServerConfig(
    const std::string& path);

// Whether `config` may take the place of `current` (an empty one at first).
// InvalidArgument; Unimplemented for a base path of a kind of file system that
// is not supported.
Status CheckConfig(const tensorflow::serving::ModelServerConfig& config,
                   const tensorflow::serving::ModelServerConfig& current);

// What --model_name and --model_base_path mean.
tensorflow::serving::ModelServerConfig ConfigOfOneModel(
    const std::string& name, const std::string& base_path);

}  // namespace headrace::serving
