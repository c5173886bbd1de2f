// Training on parameter servers, in step: workers' gradients are summed by
// accumulators on the servers, a step is made of the first N of M, and what
// comes later is dropped. Who sends what is what the product's master cuts the
// graphs into; what the queue and the accumulators do is told in numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/links.h"
#include "simulator/sync_graph.h"

namespace headrace::simulator {

struct ServersRun {
  SyncGraphOptions graph;
  int steps = 10;  // at least 3
  // Seconds of a worker's own work in a step, and how far it varies: by so much
  // of itself more or less.
  double compute = 0.05, jitter = 0;
  // By how much each worker takes longer; empty: none does.
  std::vector<double> slow;
  uint64_t seed = 1;
};

struct ServersTimes {
  double first = 0;  // seconds until the first step is made
  // Seconds a step, of those behind the second: before it workers use up the
  // tokens that training begins with.
  double step = 0;
  int64_t applied = 0, dropped = 0;  // gradients of all servers
  double server_link = 0;            // the busiest server's share of the time
};

// InvalidArgument for a run that cannot be.
StatusOr<ServersTimes> SimulateServers(const LinkModel& link,
                                       const ServersRun& run);

}  // namespace headrace::simulator
