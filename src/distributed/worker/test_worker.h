// A worker without a transport, for fuzzers of services.
#pragma once

#include <memory>
#include <string>

#include "distributed/worker/worker.h"

namespace headrace::distributed {

// That of task 0 of a job that is alone in its cluster.
inline std::shared_ptr<Worker> LoneWorker(const std::string& job, bool rings) {
  tensorflow::ServerDef def;
  auto* made = def.mutable_cluster()->add_job();
  made->set_name(job);
  (*made->mutable_tasks())[0] = job + ":1";
  def.set_job_name(job);
  return std::make_shared<Worker>(
      *Cluster::Make(def, [](const std::string&) { return nullptr; }), 1,
      rings);
}

}  // namespace headrace::distributed
