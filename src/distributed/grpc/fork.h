// gRPC's threads do not follow into a forked process.
#pragma once

namespace headrace::distributed {

// Whether this process was forked off after NoteForks.
bool HasForked();
void NoteForks();

}  // namespace headrace::distributed
