// Servers and masters as programs name them: over gRPC, and by what the
// process' environment says of TensorFlow's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/eager/remote_context.h"
#include "distributed/task/client.h"
#include "distributed/task/server.h"

namespace headrace::distributed {

// Whether TensorFlow's servers, tasks and clients may be talked with.
bool AllowsTensorflow();
// What HEADRACE_COLLECTIVES says carries the tensors of collectives.
// InvalidArgument for what is nothing of that kind.
StatusOr<Carrier> CarrierOfProcess();
// A server that is not started. NotFound, with upstream's text, for protocols
// other than "grpc", and Server::Make's and TransportOfProcess's errors.
StatusOr<std::unique_ptr<Server>> NewServer(const tensorflow::ServerDef& def);
// MasterStub::Of, with TransportOfProcess's errors.
StatusOr<std::unique_ptr<MasterStub>> StubOf(const std::string& target);
// Eager ops of this process on the other tasks of a cluster, of which it is
// one itself. RemoteContext::Connect's and TransportOfProcess's errors.
StatusOr<std::shared_ptr<RemoteContext>> ConnectEagerly(
    const RemoteOptions& options);
// Makes this process a task of `options->def`, which others reach where
// functions are spread: sets the options' worker, and in `def` the port that it
// listens at. They alone need it: where it cannot listen, the server is null
// and the options say why.
std::unique_ptr<Server> ListenForParts(RemoteOptions* options);
// Makes a group of the server's task anew (RemoteCollectives::Regroup).
// FailedPrecondition where MPI carries collectives, whose processes are the
// same for good.
StatusOr<Generation> RegroupTask(Server& server, const GroupSearch& search);
// Closes all sessions of the target's master, and forgets what the tasks of the
// cluster hold in these containers, or in the standard one where there are
// none. Of the configuration the device filters count, and the time, behind
// which it is DeadlineExceeded.
Status ResetCluster(const std::string& target,
                    const std::vector<std::string>& containers,
                    const tensorflow::ConfigProto& config);

}  // namespace headrace::distributed
