#include "distributed/data_service/state.h"

namespace headrace::distributed::data_service {
namespace {

Status DoesNotFit(const DispatcherUpdate& update) {
  return DataLoss("the dispatcher's journal is damaged: ",
                  update.ShortDebugString());
}

}  // namespace

bool IterationState::finished() const {
  if (done.empty() || pending) return false;
  return std::all_of(tasks.begin(), tasks.end(),
                     [](const auto& task) { return task.second.lost(); });
}

IterationState* DispatcherState::FindIteration(int64_t id) {
  const auto at = iterations.find(id);
  return at == iterations.end() ? nullptr : &at->second;
}

IterationState* DispatcherState::FindJob(const std::string& name,
                                         int64_t repetition) {
  for (auto& [id, iteration] : iterations) {
    if (!name.empty() && iteration.spec.job_name() == name &&
        iteration.spec.repetition() == repetition) {
      return &iteration;
    }
  }
  return nullptr;
}

Status DispatcherState::ApplyClient(const DispatcherUpdate::Client& client) {
  Taken(client.id());
  IterationState* iteration = FindIteration(client.iteration_id());
  if (iteration == nullptr) return NotFound("no such iteration");
  if (!client.released()) {
    ++iteration->num_clients;
    clients[client.id()] = {client.iteration_id(), Clock::now(), 0};
  } else if (clients.erase(client.id()) > 0) {
    if (--iteration->num_clients == 0) iteration->unused_since = Clock::now();
    if (iteration->pending) iteration->pending->agreed.erase(client.id());
  }
  return OkStatus();
}

Status DispatcherState::ApplyTaskEnd(const DispatcherUpdate::TaskEnd& end) {
  for (auto& [id, iteration] : iterations) {
    const auto at = iteration.tasks.find(end.id());
    if (at == iteration.tasks.end()) continue;
    ++iteration.version;
    if (!end.lost()) iteration.done.insert(at->second.address());
    // Rounds are counted by the tasks that there were: those that are lost keep
    // their turn.
    if (end.lost() && iteration.in_rounds()) {
      at->second.set_lost(true);
    } else {
      iteration.tasks.erase(at);
    }
    return OkStatus();
  }
  return NotFound("no such task");
}

Status DispatcherState::ApplySplit(const DispatcherUpdate::Split& split) {
  IterationState* iteration = FindIteration(split.iteration_id());
  if (iteration == nullptr || split.source() < 0 || split.next() < 0 ||
      static_cast<size_t>(split.source()) >= iteration->sources.size()) {
    return NotFound("no such source");
  }
  iteration->sources[split.source()] = {split.repetition(), split.next()};
  return OkStatus();
}

Status DispatcherState::Apply(const DispatcherUpdate& update) {
  if (update.has_dataset()) {
    datasets[update.dataset().id()] = update.dataset();
  } else if (update.has_iteration()) {
    const ServiceIteration& spec = update.iteration();
    Taken(spec.id());
    IterationState& made = iterations[spec.id()];
    made.spec = spec;
    made.sources.resize(spec.sources_size());
    made.unused_since = Clock::now();
  } else if (update.dropped_iteration() != 0) {
    iterations.erase(update.dropped_iteration());
    std::erase_if(clients, [&](const auto& client) {
      return client.second.iteration_id == update.dropped_iteration();
    });
  } else if (update.has_client()) {
    if (!ApplyClient(update.client()).ok()) return DoesNotFit(update);
  } else if (update.has_task()) {
    Taken(update.task().id());
    IterationState* iteration = FindIteration(update.task().iteration_id());
    if (iteration == nullptr) return DoesNotFit(update);
    iteration->tasks[update.task().id()] = update.task();
    ++iteration->version;
  } else if (update.has_task_end()) {
    if (!ApplyTaskEnd(update.task_end()).ok()) return DoesNotFit(update);
  } else if (update.has_split()) {
    if (!ApplySplit(update.split()).ok()) return DoesNotFit(update);
  } else {
    return DoesNotFit(update);
  }
  return OkStatus();
}

std::vector<DispatcherUpdate> DispatcherState::Updates() const {
  std::vector<DispatcherUpdate> out;
  for (const auto& [id, dataset] : datasets) {
    *out.emplace_back().mutable_dataset() = dataset;
  }
  for (const auto& [id, iteration] : iterations) {
    *out.emplace_back().mutable_iteration() = iteration.spec;
    for (size_t i = 0; i < iteration.sources.size(); ++i) {
      auto* split = out.emplace_back().mutable_split();
      split->set_iteration_id(id);
      split->set_source(static_cast<int>(i));
      split->set_repetition(iteration.sources[i].repetition);
      split->set_next(iteration.sources[i].next);
    }
    for (const auto& [task_id, task] : iteration.tasks) {
      *out.emplace_back().mutable_task() = task;
    }
    // That a worker's task came to its end, said by one that is made for it.
    for (const std::string& address : iteration.done) {
      ServiceTask* ended = out.emplace_back().mutable_task();
      ended->set_id(next_id);
      ended->set_iteration_id(id);
      ended->set_address(address);
      out.emplace_back().mutable_task_end()->set_id(next_id);
    }
  }
  for (const auto& [id, client] : clients) {
    auto* update = out.emplace_back().mutable_client();
    update->set_id(id);
    update->set_iteration_id(client.iteration_id);
  }
  return out;
}

}  // namespace headrace::distributed::data_service
