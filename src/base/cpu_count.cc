#include "base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

namespace headrace {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

// cgroup v2: "max 100000" or "150000 100000".
double QuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) {
    return kNoQuota;
  }
  return std::strtod(quota.c_str(), nullptr) / period;
}

double QuotaV1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota, period;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 ||
      period <= 0) {
    return kNoQuota;
  }
  return quota / period;
}

// The least quota of a group and of all groups above it.
double LeastQuota(const std::string& root, std::string path,
                  double (*read)(const std::string&)) {
  double least = read(root);
  while (!path.empty() && path != "/") {
    least = std::min(least, read(root + path));
    path.resize(path.rfind('/'));
  }
  return least;
}

double CgroupQuota() {
  double least = kNoQuota;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // hierarchy:controllers:path
    const size_t a = line.find(':');
    const size_t b = a == std::string::npos ? a : line.find(':', a + 1);
    if (b == std::string::npos || line.compare(b + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(a + 1, b - a - 1) + ",";
    const std::string path = line.substr(b + 1);
    if (controllers == ",,") {
      least = std::min(least, LeastQuota("/sys/fs/cgroup", path, QuotaV2));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      least = std::min(least, LeastQuota("/sys/fs/cgroup/cpu", path, QuotaV1));
    }
  }
  return least;
}

int AffinityCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int AvailableCpus() {
  const double cpus =
      std::min<double>(AffinityCpus(), std::ceil(CgroupQuota()));
  return std::max(1, static_cast<int>(cpus));
}

}  // namespace headrace
