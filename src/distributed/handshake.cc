#include "distributed/handshake.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "distributed/interface.h"
#include "graph/graph.h"

namespace headrace::distributed {
namespace {

// Names of tasks may have any bytes.
constexpr char kEntry[] = "headrace-peer-bin";

std::string Named(const PeerVersion& v, StringView task) {
  return absl::StrCat(task, " runs Headrace ", v.version, " (protocol ",
                      v.protocol, ", graphs of version ", v.graph_version, ")");
}

}  // namespace

PeerVersion OwnVersion(const std::string& task) {
  return {OwnVersionText(), kWireProtocol, kGraphVersion, task};
}

void Introduce(const PeerVersion& own, Metadata* metadata) {
  metadata->erase(kEntry);
  metadata->emplace(kEntry, absl::StrCat(own.version, ";", own.protocol, ";",
                                         own.graph_version, ";", own.task));
}

StatusOr<PeerVersion> IntroducedIn(const Metadata& metadata) {
  PeerVersion peer;
  const auto entry = metadata.find(kEntry);
  if (entry == metadata.end()) return peer;
  const std::vector<std::string> parts =
      absl::StrSplit(entry->second, absl::MaxSplits(';', 3));
  if (parts.size() != 4 || parts[0].empty() ||
      !absl::SimpleAtoi(parts[1], &peer.protocol) ||
      !absl::SimpleAtoi(parts[2], &peer.graph_version)) {
    return InvalidArgument("a peer says of itself what is no version: ",
                           entry->second.substr(0, 100));
  }
  peer.version = parts[0];
  peer.task = parts[3];
  return peer;
}

Status CheckPeer(const PeerVersion& own, const Metadata& metadata,
                 const std::string& peer, bool allows_tensorflow) {
  HR_ASSIGN_OR_RETURN(const PeerVersion other, IntroducedIn(metadata));
  if (other.version.empty()) {
    if (allows_tensorflow) return OkStatus();
    return FailedPrecondition(
        peer,
        " does not say that it runs Headrace, so it runs TensorFlow or "
        "what is like it, and ",
        Named(own, own.task),
        ": tasks of TensorFlow take part in a cluster only where its servers "
        "were started to allow it");
  }
  if (other.version == own.version && other.protocol == own.protocol &&
      other.graph_version == own.graph_version) {
    return OkStatus();
  }
  return FailedPrecondition(
      Named(other, other.task.empty() ? peer : other.task), " and ",
      Named(own, own.task),
      ": all tasks of a cluster run one version of Headrace");
}

}  // namespace headrace::distributed
