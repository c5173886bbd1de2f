#include "simulator/collective.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/collective/course.h"
#include "distributed/collective/turn.h"
#include "distributed/wire/methods.h"
#include "simulator/world.h"

namespace headrace::simulator {
namespace {

using distributed::Bytes;
using distributed::Course;
using distributed::MemberNames;
using distributed::Move;
using distributed::Moves;
using distributed::ServerCall;
using distributed::Turn;

constexpr int64_t kElement = 4;
constexpr int kMostMembers = 1 << 16;
constexpr int64_t kMostBytes = int64_t{1} << 40;
// Nobody in a simulation is late by a clock that nobody moves.
constexpr std::chrono::hours kPatience{24 * 365};
constexpr double kLongest = 7 * 24 * 3600.0;

std::string AddressOf(int rank) { return absl::StrCat("m:", rank + 1); }

Course CourseOf(const CollectiveRun& run, int rank) {
  switch (run.kind) {
    case CollectiveKind::kBroadcast:
      return distributed::HandOnCourse(rank, run.members, 0, run.bytes);
    case CollectiveKind::kGather:
      if (distributed::GoesAtOnce(run.bytes, run.members)) break;
      return distributed::StreamCourse(rank, run.members, run.bytes, true);
    default:
      if (distributed::GoesAtOnce(run.bytes, run.members)) break;
      return distributed::RingCourse(
          rank, run.members, run.bytes / kElement, kElement,
          run.kind == CollectiveKind::kReduceScatter);
  }
  return distributed::SwapCourse(rank, run.members, run.bytes);
}

// A member, whose own thread is `Go`: it is called again where it waited.
class Member {
 public:
  // What fails is told in *failure.
  Member(World& world, const CollectiveRun& run, int rank,
         std::shared_ptr<const MemberNames> names, Status* failure)
      : world_(world),
        rank_(rank),
        failure_(failure),
        transport_(world.Of(AddressOf(rank))) {
    Course course = CourseOf(run, rank);
    Turn::Options options;
    options.call.kind = run.kind;
    options.call.dtype = DType::kFloat;
    options.call.shape = Shape{run.bytes / kElement};
    options.call.merge_op = "Add";
    options.call.final_op = "Id";
    options.rank = rank;
    options.names = std::move(names);
    options.askers = course.askers;
    options.begin = options.part = kPatience;
    options.over = [] { return OkStatus(); };
    options.settled = [] {};
    options.came = [this] { Wake(); };
    turn_ = std::make_shared<Turn>(std::move(options));
    moves_ = std::make_unique<Moves>(std::move(course));
  }

  Status Listen() {
    distributed::ListenOptions listen;
    listen.address = AddressOf(rank_);
    for (const bool swaps : {false, true}) {
      const auto& method = swaps ? distributed::worker::kSwapParts
                                 : distributed::worker::kPullParts;
      listen.methods[method.path] =
          [this, swaps](const std::shared_ptr<ServerCall>& call,
                        const Bytes& bytes) { Asked(call, bytes, swaps); };
    }
    std::string error;
    listener_ = transport_->Listen(std::move(listen), &error);
    return listener_ ? OkStatus() : Internal(error);
  }
  void Start(double at) {
    world_.In(at, [this] {
      waits_ = true;
      Wake();
    });
  }

  // What it has under way ends.
  void Stop() {
    done_ = true;
    turn_->Leave();
    turn_->Fail(absl::CancelledError("the simulation is over"));
    listener_ = nullptr;
  }

  bool done() const { return done_; }
  Clock::time_point ended() const { return ended_; }

 private:
  void Asked(const std::shared_ptr<ServerCall>& call, const Bytes& bytes,
             bool swaps) {
    CollectiveHeader header;
    Bytes payload;
    Status s = distributed::SplitHeader(bytes, &header, &payload);
    if (s.ok() && !turn_->Claim(header.from())) {
      s = Internal("rank ", header.from(), " asks rank ", rank_, " in vain");
    }
    if (!s.ok()) return Fail(s);
    turn_->Arrive(header.from(), call, std::move(payload), swaps);
  }

  void Wake() {
    if (!std::exchange(waits_, false)) return;
    world_.loop().Soon([this] { Go(); });
  }
  void Fail(const Status& why) {
    if (failure_->ok()) *failure_ = why;
    End();
  }
  void End() {
    if (std::exchange(done_, true)) return;
    ended_ = world_.Now();
    turn_->Leave();
  }

  void Go() {
    while (!done_) {
      if (!has_move_ && !moves_->Next(&move_)) return End();
      has_move_ = true;
      const int64_t size = move_.range.size();
      switch (move_.what) {
        case Move::What::kAsk:
          turn_->Ask(move_.peer, To(move_.peer), /*swaps=*/false, {});
          break;
        case Move::What::kSwap:
          turn_->Ask(move_.peer, To(move_.peer), /*swaps=*/true, Fill(size));
          break;
        case Move::What::kGive:
          turn_->Give(move_.peer, Fill(size), move_.last);
          break;
        case Move::What::kTake:
        case Move::What::kMerge:
        case Move::What::kFinish:
          return Take();
      }
      has_move_ = false;
    }
  }
  void Take() {
    waits_ = true;  // what comes meanwhile wakes it
    auto part = turn_->TryTake(move_.peer);
    if (!part.ok()) return Fail(part.status());
    if (!*part) return;
    waits_ = false;
    if (static_cast<int64_t>((*part)->size()) != move_.range.size()) {
      return Fail(Internal("a part of ", (*part)->size(), " bytes came where ",
                           move_.range.size(), " were due"));
    }
    const double work = static_cast<double>((*part)->size()) *
                        world_.links().model().merge_work;
    world_.links().Work(AddressOf(rank_), work, [this] {
      if (move_.hands_on >= 0) {
        turn_->Give(move_.hands_on, Fill(move_.range.size()), move_.last);
      }
      has_move_ = false;
      Go();
    });
  }
  distributed::Channel& To(int peer) {
    channels_.push_back(transport_->Connect(AddressOf(peer), {}));
    return *channels_.back();
  }

  World& world_;
  const int rank_;
  Status* const failure_;
  const std::unique_ptr<distributed::Transport> transport_;
  std::unique_ptr<distributed::Listener> listener_;
  std::vector<std::shared_ptr<distributed::Channel>> channels_;
  std::shared_ptr<Turn> turn_;
  std::unique_ptr<Moves> moves_;
  Move move_;
  bool has_move_ = false, waits_ = false, done_ = false;
  Clock::time_point ended_;
};

// All members; what they have under way ends with them.
struct Members {
  explicit Members(World& w) : world(w) {}
  ~Members() {
    for (const auto& member : all) member->Stop();
    world.Drain();
  }
  World& world;
  std::vector<std::unique_ptr<Member>> all;
};

Status CheckRun(const CollectiveRun& run) {
  const bool known = run.kind == CollectiveKind::kReduce ||
                     run.kind == CollectiveKind::kReduceScatter ||
                     run.kind == CollectiveKind::kGather ||
                     run.kind == CollectiveKind::kBroadcast;
  if (!known) return InvalidArgument("such a collective is not simulated");
  if (run.members < 2 || run.members > kMostMembers) {
    return InvalidArgument("a group of ", run.members, " members, of 2 to ",
                           kMostMembers);
  }
  if (run.bytes < kElement || run.bytes > kMostBytes) {
    return InvalidArgument("a tensor of ", run.bytes, " bytes, of ", kElement,
                           " to ", kMostBytes);
  }
  if (!run.starts.empty() &&
      run.starts.size() != static_cast<size_t>(run.members)) {
    return InvalidArgument(run.starts.size(), " starts of ", run.members,
                           " members");
  }
  return OkStatus();
}

}  // namespace

StatusOr<CollectiveTimes> SimulateCollective(const LinkModel& link,
                                             const CollectiveRun& run) {
  HR_RETURN_IF_ERROR(CheckRun(run));
  HR_ASSIGN_OR_RETURN(const auto world, World::Make(link, run.seed));
  auto names = std::make_shared<MemberNames>();
  for (int r = 0; r < run.members; ++r) names->push_back(AddressOf(r));
  Status failure;
  Members simulated(*world);
  auto& members = simulated.all;
  for (int r = 0; r < run.members; ++r) {
    members.push_back(
        std::make_unique<Member>(*world, run, r, names, &failure));
    HR_RETURN_IF_ERROR(members.back()->Listen());
    members.back()->Start(run.starts.empty() ? 0 : run.starts[r]);
  }
  const Clock::time_point began = world->Now();
  size_t over = 0;  // those before it are done
  HR_RETURN_IF_ERROR(world->RunUntil(
      [&] {
        while (over < members.size() && members[over]->done()) ++over;
        return over == members.size() || !failure.ok();
      },
      kLongest));
  HR_RETURN_IF_ERROR(failure);
  CollectiveTimes times;
  for (int r = 0; r < run.members; ++r) {
    const Links::Traffic& traffic = world->links().Of(AddressOf(r));
    times.done.push_back(Seconds(members[r]->ended() - began));
    times.seconds = std::max(times.seconds, times.done.back());
    times.sent.push_back(traffic.sent);
    times.messages.push_back(traffic.messages);
    times.link = std::max({times.link, traffic.out, traffic.in});
    times.work += traffic.work;
  }
  if (times.seconds > 0) times.link /= times.seconds;
  return times;
}

}  // namespace headrace::simulator
