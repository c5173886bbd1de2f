// A cluster as its tasks tell it.
#pragma once

#include <string>

#include "headrace/cluster.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace headrace::tf::internal {

// Of a task of the cluster, or of one that is none of it.
tensorflow::ServerDef DefOf(const distribute::ClusterSpec& cluster,
                            const std::string& job, int index);

}  // namespace headrace::tf::internal
