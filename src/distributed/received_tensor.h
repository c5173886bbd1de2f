// What RecvTensor answers.
#pragma once

#include "distributed/transport.h"
#include "op/rendezvous.h"

namespace headrace::distributed {

StatusOr<SentValue> ReadReceived(const Bytes& bytes);
StatusOr<Bytes> WriteReceived(const SentValue& value);

}  // namespace headrace::distributed
