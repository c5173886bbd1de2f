#include "base/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace headrace {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();
// Unlimited groups of the old kind have a limit close to 2^63.
constexpr int64_t kUnlimited = int64_t{1} << 60;
// Kept free of a limit: stacks, page tables, what the interpreter needs to
// raise an error.
constexpr int64_t kReserve = int64_t{32} << 20;

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

// The number in a file; `missing` where there is none ("max", no such file).
int64_t NumberIn(const std::string& path, int64_t missing) {
  std::ifstream file(path);
  int64_t n;
  return file >> n ? n : missing;
}

// The sum of some lines "name number" of a file.
int64_t SumOf(const std::string& path, const std::vector<std::string>& names) {
  std::ifstream file(path);
  int64_t sum = 0, n;
  for (std::string name; file >> name >> n;) {
    if (std::find(names.begin(), names.end(), name) != names.end()) sum += n;
  }
  return sum;
}

int64_t FreeSwap() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("SwapFree:")) {
      return std::strtoll(line.c_str() + 9, nullptr, 10) << 10;
    }
  }
  return 0;
}

int64_t MemoryLeftV2(const std::string& folder) {
  const int64_t limit = NumberIn(folder + "/memory.max", kUnlimited);
  if (limit >= kUnlimited) return kNoMemoryLimit;
  const int64_t used = NumberIn(folder + "/memory.current", 0);
  // Pages of files are counted as used, though the kernel drops them before it
  // ends a process.
  const int64_t dropped =
      SumOf(folder + "/memory.stat",
            {"active_file", "inactive_file", "slab_reclaimable"});
  const int64_t swap = NumberIn(folder + "/memory.swap.max", kUnlimited) -
                       NumberIn(folder + "/memory.swap.current", 0);
  return limit - used + dropped + std::clamp<int64_t>(FreeSwap(), 0, swap) -
         std::min(kReserve, limit / 16);
}

int64_t MemoryLeftV1(const std::string& folder) {
  const int64_t limit = NumberIn(folder + "/memory.limit_in_bytes", kUnlimited);
  const int64_t both =
      NumberIn(folder + "/memory.memsw.limit_in_bytes", kUnlimited);
  const int64_t least = std::min(limit, both);
  if (least >= kUnlimited) return kNoMemoryLimit;
  const int64_t used = NumberIn(folder + "/memory.usage_in_bytes", 0);
  const int64_t dropped = SumOf(folder + "/memory.stat",
                                {"total_active_file", "total_inactive_file"});
  int64_t left = limit - used + FreeSwap();
  if (both < kUnlimited) {
    const int64_t with_swap =
        NumberIn(folder + "/memory.memsw.usage_in_bytes", used);
    left = std::min(left, both - with_swap);
  }
  return left + dropped - std::min(kReserve, least / 16);
}

}  // namespace

std::vector<Cgroup> CgroupsOf(const std::string& controller,
                              const CgroupPlaces& places) {
  std::vector<Cgroup> groups;
  std::ifstream file(places.self);
  for (std::string line; std::getline(file, line);) {
    // hierarchy:controllers:path
    const size_t a = line.find(':');
    const size_t b = a == std::string::npos ? a : line.find(':', a + 1);
    // hierarchy:controllers:path; lines of another form name no group.
    if (b == std::string::npos || line.compare(b + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(a + 1, b - a - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find("," + controller + ",") == std::string::npos) {
      continue;
    }
    const std::string root = v2 ? places.root : places.root + "/" + controller;
    std::string path = line.substr(b + 1);
    while (!path.empty() && path != "/") {
      // Limits of all groups around hold too; the least of them counts.
      groups.push_back({root + path, v2});
      path.resize(path.rfind('/'));
    }
    groups.push_back({root, v2});
  }
  return groups;
}

double CgroupCpus(const CgroupPlaces& places) {
  double least = kNoQuota;
  for (const Cgroup& g : CgroupsOf("cpu", places)) {
    least = std::min(least, g.v2 ? QuotaV2(g.folder) : QuotaV1(g.folder));
  }
  return least;
}

int64_t CgroupMemoryLeft(const CgroupPlaces& places) {
  int64_t least = kNoMemoryLimit;
  for (const Cgroup& g : CgroupsOf("memory", places)) {
    least =
        std::min(least, g.v2 ? MemoryLeftV2(g.folder) : MemoryLeftV1(g.folder));
  }
  return least;
}

}  // namespace headrace
