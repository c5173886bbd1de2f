// What the Open Inference Protocol tells of a server and its models, as JSON.
#pragma once

#include <string>

#include "inference/grpc_service.pb.h"

namespace headrace::serving {

std::string ServerMetadataJson(const inference::ServerMetadataResponse& server);
std::string ModelMetadataJson(const inference::ModelMetadataResponse& model);
std::string IndexJson(const inference::RepositoryIndexResponse& index);
std::string StatisticsJson(
    const inference::ModelStatisticsResponse& statistics);

}  // namespace headrace::serving
