// A channel to a peer that must be of this version: the first calls tell of the
// caller, and their answers of the peer (handshake.h).
#pragma once

#include <memory>
#include <string>

#include "distributed/handshake.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// Whether a method of that path introduces.
bool Introduces(const std::string& path);

// `peer`: what the peer is called where it does not say. An answer of a peer of
// another version is FailedPrecondition, and so is one of a peer that says
// none, unless that is allowed.
std::shared_ptr<Channel> IntroducingChannel(std::shared_ptr<Channel> channel,
                                            PeerVersion own, std::string peer,
                                            bool allows_tensorflow);

// The same of the side that answers: tells of itself in the answer.
std::shared_ptr<ServerCall> IntroducingCall(std::shared_ptr<ServerCall> call,
                                            PeerVersion own);

}  // namespace headrace::distributed
