#include "distributed/master/tasks.h"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace headrace::distributed {
namespace {

// Between words that a task is still waited for.
constexpr std::chrono::seconds kTellsEvery{10};
// Between questions to a task that answers that it is not ready.
constexpr std::chrono::milliseconds kAsksEvery{50};

StatusOr<bool> Passes(const DeviceName& task,
                      const std::vector<std::string>& filters) {
  if (filters.empty()) return true;
  for (const std::string& filter : filters) {
    DeviceName name;
    if (!DeviceName::Parse(filter, &name)) {
      return InvalidArgument("Invalid device filter: ", filter);
    }
    if (name.Task().Covers(task)) return true;
  }
  return false;
}

// Devices, by the name that the cluster has for their task.
std::vector<tensorflow::DeviceAttributes> CalledAs(
    const DeviceName& task, std::vector<tensorflow::DeviceAttributes> devices) {
  for (auto& d : devices) {
    DeviceName name;
    if (!DeviceName::Parse(d.name(), &name)) continue;
    name = {task.job, task.replica, task.task, name.type, name.id};
    d.set_name(name.ToString());
  }
  return devices;
}

// Asks the tasks for their devices, once; those that did not answer are left.
StatusOr<std::vector<Task*>> AskOnce(const std::vector<Task*>& tasks,
                                     Clock::time_point until) {
  CallOptions options;
  options.wait_for_ready = true;
  options.deadline = until;
  std::vector<tensorflow::GetStatusResponse> answers(tasks.size());
  std::vector<std::unique_ptr<Calls>> calls;
  for (size_t i = 0; i < tasks.size(); ++i) {
    calls.push_back(std::make_unique<Calls>());
    calls[i]->Start(*tasks[i]->channel,
                    absl::StrCat(kWorkerService, "GetStatus"),
                    WriteMessage(tensorflow::GetStatusRequest()), options,
                    [&answers, i](const Answer& answer) {
                      const Status s = StatusOf(answer);
                      return s.ok() ? ReadMessage(answer.body, &answers[i]) : s;
                    });
  }
  std::vector<Task*> left;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Status s = calls[i]->Wait();
    HR_RETURN_IF_ERROR(CheckStop());
    // Not there yet, or not there any more.
    if (absl::IsDeadlineExceeded(s) || absl::IsUnavailable(s)) {
      left.push_back(tasks[i]);
      continue;
    }
    HR_RETURN_IF_ERROR(s);
    const auto& devices = answers[i].device_attributes();
    tasks[i]->devices =
        CalledAs(tasks[i]->name, {devices.begin(), devices.end()});
  }
  return left;
}

// Waits for the tasks, and says which it waits for.
Status AskAll(std::vector<Task>* tasks, Clock::time_point deadline) {
  std::vector<Task*> open;
  for (Task& t : *tasks) {
    if (t.channel) open.push_back(&t);
  }
  auto tells = Clock::now() + kTellsEvery;
  while (true) {
    HR_ASSIGN_OR_RETURN(open, AskOnce(open, std::min(deadline, tells)));
    if (open.empty()) return OkStatus();
    std::string names;
    for (const Task* t : open) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", t->name.ToString());
    }
    if (Clock::now() >= deadline) {
      return DeadlineExceeded(
          "CreateSession waited in vain for response from worker: ", names);
    }
    if (Clock::now() >= tells) {
      std::fprintf(stderr,
                   "CreateSession still waiting for response from worker: %s\n",
                   names.c_str());
      tells = Clock::now() + kTellsEvery;
    } else {
      std::this_thread::sleep_for(kAsksEvery);
    }
  }
}

}  // namespace

Clock::time_point DeadlineOr(Clock::time_point deadline,
                             std::chrono::milliseconds otherwise) {
  return deadline == Clock::time_point::max() ? Clock::now() + otherwise
                                              : deadline;
}

StatusOr<std::vector<Task>> FindTasks(Worker& worker, Cluster& cluster,
                                      const std::vector<std::string>& filters,
                                      Clock::time_point deadline) {
  std::vector<Task> tasks;
  const DeviceName own =
      DeviceName::OfTask(cluster.def().job_name(), cluster.def().task_index());
  tasks.push_back({.name = own, .devices = CalledAs(own, worker.devices())});
  for (const auto& [key, address] : cluster.tasks()) {
    const DeviceName name = DeviceName::OfTask(key.first, key.second);
    if (name.SameTask(own)) continue;
    HR_ASSIGN_OR_RETURN(const bool wanted, Passes(name, filters));
    if (wanted) {
      tasks.push_back({.name = name, .channel = cluster.ChannelOf(name)});
    }
  }
  HR_RETURN_IF_ERROR(AskAll(&tasks, deadline));
  return tasks;
}

}  // namespace headrace::distributed
