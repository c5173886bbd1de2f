// Where the two ends of an edge between devices meet: who sends leaves a tensor
// under a key, who receives takes it from there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/device_name.h"
#include "op/kernel.h"
#include "op/op_traits.h"

namespace headrace {

// The ends of an edge between devices, as their ops' files state them.
// It sends input 0, which may be dead.
inline constexpr OpRole kSendRole =
    static_cast<OpRole>(static_cast<int>(OpRole::kPopBack) + 1);
// Output 0 is what comes, and may be dead unless the attribute "_alive" is set.
inline constexpr OpRole kReceiveRole =
    static_cast<OpRole>(static_cast<int>(OpRole::kPopBack) + 2);

// "SOURCE;incarnation in 16 hexadecimal
// digits;DESTINATION;edge;frame:iteration"
struct RendezvousKey {
  DeviceName source;
  uint64_t incarnation = 0;  // of the source: another one in each process
  DeviceName destination;
  std::string edge;
  std::string text;  // all of it

  // InvalidArgument where it is none.
  static StatusOr<RendezvousKey> Parse(StringView text);
  // Of a value outside of all loops.
  static RendezvousKey Of(DeviceName source, uint64_t incarnation,
                          DeviceName destination, StringView edge);
};

// A value on its way, or word that there will be none: the branch that makes
// it is not taken.
struct SentValue {
  Tensor tensor;
  bool dead = false;
};

// Of one step. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Never waits. Values of one key are received in the order in which they were
  // sent. The error of an abort.
  virtual Status Send(const RendezvousKey& key, SentValue value) = 0;
  // True, and *value, where one has come; the error of an abort.
  virtual StatusOr<bool> TryReceive(const RendezvousKey& key,
                                    SentValue* value) = 0;
  // Calls `ready` once, perhaps at once, when TryReceive would not give false;
  // on any thread.
  virtual void Await(const RendezvousKey& key, std::function<void()> ready) = 0;
};

// While it lives, steps that this thread runs meet there. Ends of edges run on
// the thread of the run: they never are given one of their own.
class RendezvousScope {
 public:
  explicit RendezvousScope(Rendezvous* rendezvous)
      : saved_(std::exchange(here_, rendezvous)) {}
  ~RendezvousScope() { here_ = saved_; }
  RendezvousScope(const RendezvousScope&) = delete;
  RendezvousScope& operator=(const RendezvousScope&) = delete;
  static Rendezvous* Current() { return here_; }

 private:
  Rendezvous* const saved_;
  static constinit inline thread_local Rendezvous* here_
      [[gnu::tls_model("initial-exec")]] = nullptr;
};

// Waits, as CheckStop allows.
Status Receive(Rendezvous& rendezvous, const RendezvousKey& key,
               SentValue* value);

}  // namespace headrace
