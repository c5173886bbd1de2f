#include "distributed/mpi/mpi_engine.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "distributed/collective/ways.h"
#include "distributed/group/calls_of_members.h"
#include "distributed/mpi/mpi_turn.h"

namespace headrace::distributed {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

StatusOr<std::shared_ptr<MpiCollectives>> MpiCollectives::Make(
    std::shared_ptr<MpiWorld> world, MpiCollectivesOptions options) {
  HR_ASSIGN_OR_RETURN(auto post, MpiPost::Make(std::move(world), options.task));
  return std::shared_ptr<MpiCollectives>(
      new MpiCollectives(std::move(post), std::move(options)));
}

Status MpiCollectives::Join(const GroupMember& member) {
  HR_ASSIGN_OR_RETURN(const GroupMembers members,
                      options_.own->MembersOf(member));
  return RanksOf(members, PatienceOf(member, options_.begin)).status();
}

StatusOr<std::vector<int>> MpiCollectives::RanksOf(
    const GroupMembers& members, std::chrono::milliseconds patience) {
  const Clock::time_point since = Clock::now();
  std::vector<int> ranks;
  MpiPause pause;
  for (size_t i = 0; i < members.devices.size();) {
    HR_ASSIGN_OR_RETURN(const std::optional<int> rank,
                        post_->RankOf(members.devices[i]));
    if (rank) {
      ranks.push_back(*rank);
      ++i;
      continue;
    }
    HR_RETURN_IF_ERROR(post_->Poll());
    HR_RETURN_IF_ERROR(members.status());
    const std::chrono::duration<double> waited = Clock::now() - since;
    if (waited > patience) {
      return DeadlineExceeded(
          MemberText(*members.names, members.rank), " waited ",
          absl::StrFormat("%.1f", waited.count()), " s for ",
          MemberText(*members.names, static_cast<int>(i)),
          " to say which rank of MPI's world it is; yet to say so: ",
          post_->Unknown());
    }
    HR_RETURN_IF_ERROR(pause());
  }
  return ranks;
}

StatusOr<Tensor> MpiCollectives::Run(const CollectiveCall& call) {
  // By TensorFlow's messages, which are no messages of MPI.
  if (call.ring && options_.own->rings()) return options_.own->Run(call);
  HR_ASSIGN_OR_RETURN(const GroupMembers members,
                      options_.own->MembersOf(call.member));
  if (members.names->size() == 1) return ResultAlone(call);
  const MpiPost::Spot spot{members.group, members.rank, call.instance_key};
  {
    MutexLock lock(mutex_);
    if (!running_.insert(spot).second) {
      return InvalidArgument(
          MemberText(*members.names, members.rank), " takes part in group ",
          call.member.group_key,
          " by two calls at the same time; give each member a logical device "
          "of its own (tf.config.set_logical_device_configuration), or a rank");
    }
  }
  StatusOr<Tensor> result = RunIn(call, members);
  // Others would wait for ever for a member that went away.
  if (!result.ok()) {
    members.end(result.status());
    post_->Forget(members.group);
  }
  MutexLock lock(mutex_);
  running_.erase(spot);
  return result;
}

StatusOr<Tensor> MpiCollectives::RunIn(const CollectiveCall& call,
                                       const GroupMembers& members) {
  MpiTurn::Options options;
  options.call = call;
  options.call.input = Tensor();
  options.members = members;
  options.begin = PatienceOf(call.member, options_.begin);
  options.part = PatienceOf(call.member, options_.part);
  HR_ASSIGN_OR_RETURN(options.ranks, RanksOf(members, options.begin));
  {
    MutexLock lock(mutex_);
    Rounds& rounds = rounds_[{members.group, members.rank}];
    options.call.odd_round = rounds.Next(call.instance_key);
  }
  std::vector<std::shared_ptr<MpiTurn>> turns;
  const Meeting meeting{
      call, members.rank, static_cast<int>(members.names->size()),
      [&](int step, std::set<int> askers) -> StatusOr<std::shared_ptr<Side>> {
        options.step = step;
        options.askers = std::move(askers);
        return turns.emplace_back(std::make_shared<MpiTurn>(*post_, options));
      }};
  HR_ASSIGN_OR_RETURN(Tensor result, GoTogether(meeting));
  // Nobody moves what is left of it behind the call.
  for (const auto& turn : turns) HR_RETURN_IF_ERROR(turn->Settle());
  return result;
}

}  // namespace headrace::distributed
