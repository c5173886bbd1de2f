#include "simulator/world.h"

namespace headrace::simulator {
namespace {

// What may be under way, or unread, from one task to another in one call: the
// windows of HTTP/2 and of TCP.
constexpr size_t kAhead = 4 << 20;

}  // namespace

distributed::Bytes Fill(int64_t bytes) {
  static const auto* const kFill = new std::shared_ptr<const std::vector<char>>(
      std::make_shared<const std::vector<char>>(kMostFill));
  distributed::Bytes made;
  made.Append({*kFill, (*kFill)->data(), static_cast<size_t>(bytes)});
  return made;
}

StatusOr<std::unique_ptr<World>> World::Make(const LinkModel& model,
                                             uint64_t seed) {
  std::unique_ptr<World> world(new World(model, seed));
  // What has not happened has the time 0 in places.
  world->loop_.RunUntil(Clock::time_point(std::chrono::hours(1)));
  distributed::LocalOptions options;
  options.loop = &world->loop_;
  options.ahead = kAhead;
  options.carry = [links = &world->links_](const std::string& from,
                                           const std::string& to, size_t bytes,
                                           std::function<void()> arrive) {
    links->Carry(from, to, bytes, std::move(arrive));
  };
  HR_ASSIGN_OR_RETURN(world->network_,
                      distributed::LocalNetwork::Create(std::move(options)));
  return world;
}

Status World::RunUntil(const std::function<bool()>& done, double seconds) {
  const Clock::time_point end = loop_.Now() + InClock(seconds);
  while (!done()) {
    if (loop_.RunOne(end)) continue;
    return absl::DeadlineExceededError(
        "the simulated cluster did not come to its end");
  }
  return OkStatus();
}

}  // namespace headrace::simulator
