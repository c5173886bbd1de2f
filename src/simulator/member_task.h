// A task of a simulated group whose members come and go, with the product's own
// engine of collectives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/collective/engine.h"
#include "simulator/world.h"

namespace headrace::simulator {

// It seeks its group, waits in a sum with the members that it found, and seeks
// again when that fails.
class MemberTask {
 public:
  MemberTask(World& world, int number, uint64_t life,
             const distributed::GroupSearch& search);

  Status Listen();
  void Seek();
  // Its connections break, and it does nothing any more.
  void Die();
  // What it has under way ends, as far as it is this task's to end.
  void End();

  static std::string AddressOf(int number);
  // Of the generation that it waits in a sum with; null while it seeks.
  const Generation* generation() const {
    return seeks_ || !found_ ? nullptr : &generation_;
  }
  const Status& status() const { return status_; }

 private:
  distributed::Channel& To(int number);
  void LookSoon();
  void Look();
  void BeginSum();
  void LookAtSum();
  void Poll();
  void Failed(const Status& why);

  World& world_;
  const int number_;
  const distributed::GroupSearch search_;
  const std::unique_ptr<distributed::Transport> transport_;
  std::vector<std::shared_ptr<distributed::Channel>> channels_;  // by number
  std::shared_ptr<distributed::RemoteCollectives> engine_;
  std::unique_ptr<distributed::Listener> listener_;
  std::shared_ptr<distributed::Turn> turn_;
  Generation generation_;
  bool found_ = false, seeks_ = false, looks_ = false, waits_ = false,
       dead_ = false;
  int left_ = 0;
  Status status_;
};

}  // namespace headrace::simulator
