// How many CPUs this process may use.
#pragma once

namespace headrace {

// The least of the affinity mask's CPUs and the cgroup's CPU quota (rounded
// up), read anew at each call; at least 1.
int AvailableCpus();

}  // namespace headrace
