// What a dispatcher of the data service knows and keeps: datasets, iterations,
// their tasks and clients. It changes by updates alone, which are the lines of
// its journal.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "distributed/transport.h"
#include "headrace/data_service.pb.h"

namespace headrace::distributed::data_service {

// A new task of coordinated reads, until all consumers stand still before the
// round in which it begins.
struct PendingTask {
  ServiceTask task;
  std::map<int64_t, bool> agreed;  // clients
};

struct Source {
  int64_t repetition = 0, next = 0;
};

struct IterationState {
  ServiceIteration spec;
  std::vector<Source> sources;
  std::map<int64_t, ServiceTask> tasks;  // not ended; of rounds also lost ones
  std::set<std::string> done;            // workers whose task came to its end
  // Not kept: since when nobody reads, and what a client is told of.
  int64_t version = 1;
  int64_t num_clients = 0;
  Clock::time_point unused_since;
  std::optional<PendingTask> pending;

  bool in_rounds() const { return spec.num_consumers() > 0; }
  bool finished() const;
};

struct ClientState {
  int64_t iteration_id = 0;
  // Not kept.
  Clock::time_point heard;
  int64_t round = 0;
};

class DispatcherState {
 public:
  // Does what an update says. DataLoss where it does not fit what is there.
  Status Apply(const DispatcherUpdate& update);
  // Updates that make this state of an empty one.
  std::vector<DispatcherUpdate> Updates() const;

  IterationState* FindIteration(int64_t id);
  // The iteration of a named job; null.
  IterationState* FindJob(const std::string& name, int64_t repetition);

  std::map<std::string, ServiceDataset> datasets;
  std::map<int64_t, IterationState> iterations;
  std::map<int64_t, ClientState> clients;
  int64_t next_id = 1000;  // of iterations, clients and tasks

 private:
  void Taken(int64_t id) { next_id = std::max(next_id, id + 1); }
  Status ApplyClient(const DispatcherUpdate::Client& client);
  Status ApplyTaskEnd(const DispatcherUpdate::TaskEnd& end);
  Status ApplySplit(const DispatcherUpdate::Split& split);
};

}  // namespace headrace::distributed::data_service
