#include "distributed/cluster.h"

#include "absl/strings/numbers.h"

namespace headrace::distributed {

bool ParsePort(StringView address, int* port) {
  const size_t colon = address.rfind(':');
  return colon != StringView::npos && colon > 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), port) && *port >= 0 &&
         *port <= 65535;
}

Status CheckAddress(StringView address) {
  int port = 0;
  if (ParsePort(address, &port)) return OkStatus();
  return InvalidArgument("Could not interpret \"", address,
                         "\" as a host-port pair.");
}

StatusOr<std::shared_ptr<Cluster>> Cluster::Make(
    const tensorflow::ServerDef& def, Dial dial) {
  auto made = std::make_shared<Cluster>();
  made->def_ = def;
  made->dial_ = std::move(dial);
  bool own = false;
  for (const auto& job : def.cluster().job()) {
    for (const auto& [index, address] : job.tasks()) {
      if (index < 0 || address.empty()) {
        return InvalidArgument("Task ", index, " in job \"", job.name(),
                               "\" has no address");
      }
      HR_RETURN_IF_ERROR(CheckAddress(address));
      if (!made->addresses_.emplace(std::pair(job.name(), index), address)
               .second) {
        return InvalidArgument("JobDef for job \"", job.name(),
                               "\" contains two addresses for task ", index);
      }
      own = own || (job.name() == def.job_name() && index == def.task_index());
    }
  }
  if (!own) {
    return InvalidArgument("Task ", def.task_index(), " in job \"",
                           def.job_name(), "\" was not defined in the cluster");
  }
  return made;
}

std::shared_ptr<Channel> Cluster::ChannelOf(const DeviceName& task) {
  if (!task.job || !task.task) return nullptr;
  const std::pair key(*task.job, *task.task);
  const auto address = addresses_.find(key);
  if (address == addresses_.end()) return nullptr;
  MutexLock lock(mutex_);
  std::shared_ptr<Channel>& channel = channels_[key];
  if (!channel) channel = dial_(address->second);
  return channel;
}

}  // namespace headrace::distributed
