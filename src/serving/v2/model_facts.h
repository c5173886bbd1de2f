// What the Open Inference Protocol tells of a server and its models.
#pragma once

#include <functional>

#include "inference/grpc_service.pb.h"
#include "serving/models.h"
#include "serving/v2/statistics.h"

namespace headrace::serving {

struct InferenceServer {
  Models& models;
  // Whether the server is about to end; empty: never.
  std::function<bool()> draining;
  InferStatisticsBook statistics;

  bool Ready() { return !(draining && draining()) && models.Ready(); }
};

inference::ServerMetadataResponse ServerMetadata();
// False for models that are not there, too. InvalidArgument for what is no
// version.
StatusOr<bool> ModelReady(InferenceServer& server, StringView name,
                          StringView version);
// Of one signature: its inputs and outputs; of all versions that are available:
// their numbers. May wait for a load. Where `signature` is empty and there is
// no default one, no inputs and outputs.
StatusOr<inference::ModelMetadataResponse> ModelMetadata(
    InferenceServer& server, StringView name, StringView version,
    StringView signature);
// InvalidArgument for a repository's name: there is one, without a name.
StatusOr<inference::RepositoryIndexResponse> RepositoryIndex(
    InferenceServer& server, const inference::RepositoryIndexRequest& request);
// These wait, as Models::LoadModel does. InvalidArgument for parameters that
// are not supported.
Status RepositoryLoad(InferenceServer& server,
                      const inference::RepositoryModelLoadRequest& request);
Status RepositoryUnload(InferenceServer& server,
                        const inference::RepositoryModelUnloadRequest& request);
// Of the versions that answered over the protocol; an empty name is all models,
// an empty version all versions. NotFound for a model that is not there.
StatusOr<inference::ModelStatisticsResponse> ModelStatistics(
    InferenceServer& server, StringView name, StringView version);

}  // namespace headrace::serving
