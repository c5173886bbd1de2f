// Profiles: what a process did from Start to Stop, as TensorBoard's profile
// page reads it.
#pragma once

#include <string>

#include "base/timeline.h"

namespace headrace {

struct ProfileOptions {
  // 0: no events; 1: scopes of the user's and calls of traced functions; 2 and
  // more: eager ops, functions' plans and their steps, too.
  int host_level = 2;
  // Events that begin earlier than so long after the start are left out.
  int64_t delay_ms = 0;
};

// AlreadyExists where a profile is under way. `folder` is looked at by
// StopProfile.
Status StartProfile(const std::string& folder, const ProfileOptions& options);

struct Profile {
  std::string path;  // of the file, or ""
  timeline::Recording recording;
};

// Ends it and writes "FOLDER/plugins/profile/TIME/HOST.xplane.pb" (TIME_2 and
// so on where this host has written one in the same second), or forgets it
// where `save` is false. Unavailable where no profile is under way; on other
// errors it has ended, too.
StatusOr<Profile> StopProfile(bool save);

}  // namespace headrace
