#include "simulator/member_task.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/collective/course.h"

namespace headrace::simulator {
namespace {

// As AwaitChange has threads look again.
constexpr double kLookEvery = 0.02;
constexpr char kJob[] = "worker";
// A channel that could not connect tries again after so long
// (grpc/channel.cc).
constexpr std::chrono::seconds kReconnects{1};

// As gRPC's: where it once found nobody, calls fail at once until it has tried
// again and somebody was there. Calls that wait for a connection wait.
class ReconnectingChannel : public distributed::Channel {
 public:
  ReconnectingChannel(World& world, std::string address,
                      std::shared_ptr<distributed::Channel> inner)
      : world_(world), address_(std::move(address)), inner_(std::move(inner)) {}

  std::shared_ptr<distributed::ClientCall> Start(
      const std::string& path, distributed::Bytes request,
      const distributed::CallOptions& options,
      std::function<void(distributed::Answer)> done) override {
    if (options.wait_for_ready || Connects()) {
      return inner_->Start(path, std::move(request), options, std::move(done));
    }
    struct Failed : distributed::ClientCall {
      void Cancel() override {}
    };
    world_.loop().Soon([done = std::move(done), to = address_] {
      done({14, absl::StrCat("no connection to ", to)});
    });
    return std::make_shared<Failed>();
  }

 private:
  bool Connects() {
    const Clock::time_point now = world_.Now();
    const auto since = world_.listens.find(address_);
    const bool listens = since != world_.listens.end();
    if (listens && failed_) {
      auto tries = *failed_;
      while (tries < since->second) tries += kReconnects;
      if (tries <= now) failed_ = std::nullopt;
    } else if (!listens && !failed_) {
      failed_ = now;
    }
    return !failed_;
  }

  World& world_;
  const std::string address_;
  const std::shared_ptr<distributed::Channel> inner_;
  std::optional<Clock::time_point> failed_;  // when it first did
};

}  // namespace

std::string MemberTask::AddressOf(int number) {
  return absl::StrCat("w:", number + 1);
}

MemberTask::MemberTask(World& world, int number, uint64_t life,
                       const distributed::GroupSearch& search)
    : world_(world),
      number_(number),
      search_(search),
      transport_(world.Of(AddressOf(number))),
      channels_(search.tasks.size()) {
  distributed::RemoteCollectivesOptions o;
  o.task = DeviceName::OfTask(kJob, number);
  o.incarnation = life;
  o.leader = DeviceName::OfTask(kJob, 0);
  o.now = [&world] { return world.Now(); };
  o.news = [this](int64_t) { LookSoon(); };
  o.channel_of = [this](const DeviceName& task) {
    To(*task.task);
    return channels_[*task.task];
  };
  engine_ = distributed::RemoteCollectives::Make(std::move(o));
}

distributed::Channel& MemberTask::To(int number) {
  auto& channel = channels_[number];
  if (!channel) {
    const std::string address = AddressOf(number);
    channel = std::make_shared<ReconnectingChannel>(
        world_, address, transport_->Connect(address, {}));
  }
  return *channel;
}

void MemberTask::End() {
  Die();
  if (turn_) std::exchange(turn_, nullptr)->Leave();
  engine_->StopNow();
}

Status MemberTask::Listen() {
  distributed::ListenOptions listen;
  listen.address = AddressOf(number_);
  listen.methods = engine_->Methods();
  std::string error;
  listener_ = transport_->Listen(std::move(listen), &error);
  world_.listens.emplace(AddressOf(number_), world_.Now());
  return listener_ ? OkStatus() : Internal(error);
}

void MemberTask::Die() {
  dead_ = true;
  if (listener_) world_.listens.erase(AddressOf(number_));
  listener_ = nullptr;
}

void MemberTask::Seek() {
  if (dead_) return;
  seeks_ = true;
  if (Status s = engine_->BeginRegroup(search_); !s.ok()) return Failed(s);
  Look();
}

// News that come together are looked at together, as a thread would that they
// wake.
void MemberTask::LookSoon() {
  if (dead_ || !seeks_ || std::exchange(looks_, true)) return;
  world_.loop().Soon([this] {
    looks_ = false;
    if (!dead_ && seeks_) Look();
  });
}

void MemberTask::Look() {
  auto found = engine_->TryRegroup(search_);
  if (!found.ok()) return Failed(found.status());
  if (*found) {
    seeks_ = false;
    found_ = true;
    generation_ = **std::move(found);
    return BeginSum();
  }
  if (std::exchange(waits_, true)) return;
  world_.In(kLookEvery, [this] {
    waits_ = false;
    LookSoon();
  });
}

// One that never ends: who is before it gives nothing.
void MemberTask::BeginSum() {
  CollectiveCall call;
  call.member.group_key = search_.group_key;
  call.member.group_size = generation_.devices_size();
  call.instance_key = 1;
  call.dtype = DType::kFloat;
  call.shape = Shape{1 << 20};
  call.merge_op = "Add";
  call.final_op = "Id";
  const int size = generation_.devices_size();
  int rank = -1;
  std::vector<int> numbers;
  for (const std::string& text : generation_.devices()) {
    DeviceName device;
    if (!DeviceName::Parse(text, &device) || !device.task) {
      return Failed(Internal("a member ", text));
    }
    if (*device.task == number_) rank = static_cast<int>(numbers.size());
    numbers.push_back(*device.task);
  }
  if (rank < 0 || size < 2) return;
  const distributed::Course course = distributed::RingCourse(
      rank, size, call.shape[0], sizeof(float), /*scatters=*/false);
  auto turn =
      engine_->BeginTurn(call, rank, 0, course.askers, [this] { LookAtSum(); });
  if (!turn.ok()) return Failed(turn.status());
  turn_ = *std::move(turn);
  const distributed::Move ask = course.stretch(0);
  left_ = ask.peer;
  turn_->Ask(left_, To(numbers[left_]), /*swaps=*/false, {});
  Poll();
}

void MemberTask::LookAtSum() {
  world_.loop().Soon([this] {
    if (dead_ || !turn_) return;
    const auto part = turn_->TryTake(left_);
    if (part.ok()) return;
    // As a call that fails ends its group.
    const auto turn = std::exchange(turn_, nullptr);
    turn->Leave();
    engine_->EndByKey(search_.group_key, part.status());
    Seek();
  });
}

void MemberTask::Poll() {
  world_.In(kLookEvery, [this, turn = std::weak_ptr(turn_)] {
    if (dead_ || !turn_ || turn.lock() != turn_) return;
    if (engine_->UnderWay(search_.group_key).ok()) return Poll();
    std::exchange(turn_, nullptr)->Leave();
    Seek();
  });
}

void MemberTask::Failed(const Status& why) {
  status_ = why;
  dead_ = true;
}

}  // namespace headrace::simulator
