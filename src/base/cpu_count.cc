#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/cgroup.h"

namespace headrace {
namespace {

int AffinityCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int AvailableCpus() {
  const double cpus = std::min<double>(AffinityCpus(), std::ceil(CgroupCpus()));
  return std::max(1, static_cast<int>(cpus));
}

int TasksForProcessors() {
  static const int tasks = [] {
    int n = 2;
    while (n < AvailableCpus() && n < 64) n *= 2;
    return n;
  }();
  return tasks;
}

}  // namespace headrace
