// Whether two tasks may talk: those of one version of Headrace may, and
// TensorFlow's where a cluster was made so. Two versions that meet would run
// and fail somewhere inside.
//
// Each tells of itself in the metadata of its first calls (RemoteMethod's
// `introduces`) and of their answers.
#pragma once

#include <string>

#include "base/status.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// Raised where tasks of one version of Headrace and another would no longer
// understand each other.
inline constexpr int kWireProtocol = 4;

struct PeerVersion {
  std::string version;  // of Headrace
  int protocol = kWireProtocol;
  int graph_version = 0;  // of TensorFlow's graphs
  std::string task;       // "/job:worker/replica:0/task:0"

  bool operator==(const PeerVersion&) const = default;
};

// This library's.
PeerVersion OwnVersion(const std::string& task);

// Adds what a peer tells of itself.
void Introduce(const PeerVersion& own, Metadata* metadata);

// InvalidArgument where the metadata has an entry that is none; nothing of
// `version` where it has none.
StatusOr<PeerVersion> IntroducedIn(const Metadata& metadata);

// OK, or FailedPrecondition that names both versions and both tasks. `metadata`
// is of a call or of an answer, `peer` what its task is called where it does
// not say.
Status CheckPeer(const PeerVersion& own, const Metadata& metadata,
                 const std::string& peer, bool allows_tensorflow);

}  // namespace headrace::distributed
