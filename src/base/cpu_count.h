// How many CPUs this process may use.
#pragma once

namespace headrace {

// The least of the affinity mask's CPUs and the cgroup's CPU quota (rounded
// up), read anew at each call; at least 1.
int AvailableCpus();

// Tasks that heavy work is cut into so that each processor gets one: the CPUs
// found at the first call as a power of two, from 2 on, so that machines of one
// and of two processors get the same bits, to 64. Whatever number of threads is
// set does not count: the bits of sums depend on the cut.
int TasksForProcessors();

}  // namespace headrace
