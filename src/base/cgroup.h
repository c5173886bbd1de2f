// The control groups that this process is in, and what they allow.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace headrace {

// Where the system tells of groups; tests hand in others.
struct CgroupPlaces {
  std::string self = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

// The folder of a group, of the old (v1, one tree a controller) or the new
// kind.
struct Cgroup {
  std::string folder;
  bool v2;
};

// The groups of this process for a controller ("cpu", "memory") and all above
// them: limits hold for all that lies below.
std::vector<Cgroup> CgroupsOf(const std::string& controller,
                              const CgroupPlaces& places = {});

// CPUs by quota, the least of all groups; infinity: no quota.
double CgroupCpus(const CgroupPlaces& places = {});

inline constexpr int64_t kNoMemoryLimit = std::numeric_limits<int64_t>::max();

// Bytes that may still be used before a memory limit is met and the system ends
// a process: the least of all groups, less a little for the system's own needs.
// What the system can drop (pages of files) or put elsewhere (swap) is taken as
// free. May be negative; kNoMemoryLimit where no group has a limit.
int64_t CgroupMemoryLeft(const CgroupPlaces& places = {});

}  // namespace headrace
