#include "formats/profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <vector>

#include "base/files/files.h"
#include "base/fork_mutex.h"
#include "base/hash_map.h"
#include "base/host_name.h"
#include "base/mutex.h"
#include "base/timeline.h"
#include "base/utf8.h"
#include "tsl/profiler/protobuf/profiler_options.pb.h"
#include "tsl/profiler/protobuf/xplane.pb.h"

namespace headrace {
namespace {

using timeline::Event;

struct ProfileSession {
  std::string folder;
  ProfileOptions options;
  std::chrono::system_clock::time_point begin;
};
struct ProfileState {
  ProcessMutex mutex;
  std::optional<ProfileSession> session ABSL_GUARDED_BY(mutex);
};
ProfileState& TheProfile() {
  static auto* state = new ProfileState;
  return *state;
}

// Protobuf's strings are UTF-8; names are anything.
std::string AsUtf8(StringView text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const int32_t c = Utf8Next(text, &at);
    Utf8Append(c < 0 ? kReplacementCharacter : c, &out);
  }
  return out;
}

// One plane being written: names are numbered as they come.
class Plane {
 public:
  explicit Plane(tensorflow::profiler::XPlane* plane) : plane_(plane) {}

  // `shown`: in short, where that is not the name.
  int64_t EventId(const std::string& name, StringView shown) {
    const auto [at, is_new] = events_.try_emplace(name, events_.size() + 1);
    if (is_new) {
      auto& made = (*plane_->mutable_event_metadata())[at->second];
      made.set_id(at->second);
      made.set_name(AsUtf8(name));
      made.set_display_name(AsUtf8(shown));
    }
    return at->second;
  }
  int64_t StatId(const std::string& name) {
    const auto [at, is_new] = stats_.try_emplace(name, stats_.size() + 1);
    if (is_new) {
      auto& made = (*plane_->mutable_stat_metadata())[at->second];
      made.set_id(at->second);
      made.set_name(AsUtf8(name));
    }
    return at->second;
  }
  void SetStat(const std::string& key, const timeline::Attribute& value,
               tensorflow::profiler::XStat* stat) {
    stat->set_metadata_id(StatId(key));
    if (const auto* i = std::get_if<int64_t>(&value)) {
      stat->set_int64_value(*i);
    } else if (const auto* u = std::get_if<uint64_t>(&value)) {
      stat->set_uint64_value(*u);
    } else if (const auto* d = std::get_if<double>(&value)) {
      stat->set_double_value(*d);
    } else {
      stat->set_ref_value(StatId(std::get<std::string>(value)));
    }
  }
  tensorflow::profiler::XStat* AddStat() { return plane_->add_stats(); }

 private:
  tensorflow::profiler::XPlane* const plane_;
  HashMap<std::string, int64_t> events_, stats_;
};

// The events of a thread, as lines show them: outer ones first.
class LineWriter {
 public:
  LineWriter(int64_t begin, Plane* plane, tensorflow::profiler::XLine* line)
      : begin_(begin), plane_(*plane), line_(line) {}

  void Write(const Event& e) {
    switch (e.kind) {
      case Event::Kind::kStep:
        Add(e, absl::StrCat(e.name, ":", e.op), e.op);
        break;
      case Event::Kind::kOp:
        WriteOp(e, 0);
        break;
      case Event::Kind::kFunction:
        WriteOp(e, 1);
        break;
      default: {
        auto* out = Add(e, e.name);
        for (const auto& [key, value] : e.attributes) {
          plane_.SetStat(key, value, out->add_stats());
        }
      }
    }
  }

 private:
  // Upstream has two events an eager op, the second with its name in it.
  void WriteOp(const Event& e, int64_t is_function) {
    auto* out = Add(e, "EagerExecute");
    plane_.SetStat("eager_op", e.name, out->add_stats());
    plane_.SetStat("is_func", is_function, out->add_stats());
    Add(e, absl::StrCat("EagerLocalExecute: ", e.name));
  }
  tensorflow::profiler::XEvent* Add(const Event& e, const std::string& name,
                                    StringView shown = {}) {
    auto* out = line_->add_events();
    out->set_metadata_id(plane_.EventId(name, shown));
    out->set_offset_ps((e.begin - begin_) * 1000);
    out->set_duration_ps((e.end - e.begin) * 1000);
    return out;
  }

  const int64_t begin_;
  Plane& plane_;
  tensorflow::profiler::XLine* const line_;
};

void WriteThreads(const timeline::Recording& recording,
                  tensorflow::profiler::XPlane* out) {
  out->set_name("/host:CPU");
  Plane plane(out);
  std::map<int, std::vector<const Event*>> threads;
  for (const Event& e : recording.events) threads[e.thread].push_back(&e);
  for (auto& [number, events] : threads) {
    std::stable_sort(
        events.begin(), events.end(), [](const Event* a, const Event* b) {
          return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
        });
    auto* line = out->add_lines();
    std::string name = AsUtf8(recording.threads.at(number));
    // The main thread has the program's name; others may share theirs.
    if (number != getpid()) absl::StrAppend(&name, "/", number);
    line->set_id(number);
    line->set_name(name);
    line->set_display_name(name);
    LineWriter writer(recording.begin, &plane, line);
    for (const Event* e : events) writer.Write(*e);
  }
}

void WriteEnvironment(const ProfileSession& session, uint64_t begin,
                      uint64_t duration, tensorflow::profiler::XPlane* out) {
  tensorflow::ProfileOptions options;
  options.set_version(1);
  options.set_host_tracer_level(session.options.host_level);
  options.set_device_type(tensorflow::ProfileOptions::CPU);
  options.set_repository_path(AsUtf8(session.folder));
  if (session.options.delay_ms > 0) options.set_start_timestamp_ns(begin);
  out->set_name("Task Environment");
  Plane plane(out);
  plane.SetStat("profile_start_time", begin, plane.AddStat());
  plane.SetStat("profile_stop_time", begin + duration, plane.AddStat());
  auto* stat = plane.AddStat();
  stat->set_metadata_id(plane.StatId("profile_options"));
  stat->set_bytes_value(options.SerializeAsString());
}

// As the name of a file.
std::string ThisHost() {
  std::string host = AsUtf8(HostName());
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

// As the profile page sorts its runs.
std::string RunName(std::chrono::system_clock::time_point begin) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(begin);
  std::tm parts;
  localtime_r(&seconds, &parts);
  char name[32];
  std::strftime(name, sizeof(name), "%Y_%m_%d_%H_%M_%S", &parts);
  return name;
}

StatusOr<std::string> WriteProfile(const ProfileSession& session,
                                   const timeline::Recording& recording) {
  tensorflow::profiler::XSpace space;
  const std::string host = ThisHost();
  space.add_hostnames(host);
  if (recording.left_out > 0) {
    space.add_warnings(absl::StrCat(recording.left_out,
                                    " events were left out, as their memory "
                                    "came to an end."));
  }
  WriteThreads(recording, space.add_planes());
  const auto begin = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         session.begin.time_since_epoch()) +
                     std::chrono::milliseconds(session.options.delay_ms);
  WriteEnvironment(session, begin.count(),
                   std::max<int64_t>(recording.end - recording.begin, 0),
                   space.add_planes());
  std::string bytes;
  if (!space.SerializeToString(&bytes)) {
    return ResourceExhausted("the profile is larger than 2 GiB");
  }
  std::string folder;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(session.folder, &folder));
  const std::string run =
      JoinPath(JoinPath(folder, "plugins/profile"), RunName(session.begin));
  const std::string file = absl::StrCat("/", host, ".xplane.pb");
  std::string at = run;
  for (int n = 2; FileExists(fs, at + file); ++n)
    at = absl::StrCat(run, "_", n);
  HR_RETURN_IF_ERROR(CreateDirectories(fs, at));
  HR_RETURN_IF_ERROR(WriteFileAtomically(fs, at + file, bytes));
  return at + file;
}

}  // namespace

Status StartProfile(const std::string& folder, const ProfileOptions& options) {
  constexpr int64_t kMostDelay = int64_t{1} << 42;  // ms, some 100 years
  if (options.delay_ms < 0 || options.delay_ms > kMostDelay) {
    return InvalidArgument("a profile cannot begin in ", options.delay_ms,
                           " ms");
  }
  if (options.host_level < 0) {
    return InvalidArgument("there is no host tracer level ",
                           options.host_level);
  }
  ProfileState& state = TheProfile();
  MutexLock lock(state.mutex);
  HR_RETURN_IF_ERROR(
      timeline::Start(options.host_level, options.delay_ms * 1'000'000));
  state.session = {folder, options, std::chrono::system_clock::now()};
  return OkStatus();
}

StatusOr<Profile> StopProfile(bool save) {
  ProfileState& state = TheProfile();
  std::optional<ProfileSession> session;
  Profile profile;
  {
    MutexLock lock(state.mutex);
    HR_ASSIGN_OR_RETURN(profile.recording, timeline::Stop());
    session.swap(state.session);
  }
  if (save && session) {
    HR_ASSIGN_OR_RETURN(profile.path,
                        WriteProfile(*session, profile.recording));
  }
  return profile;
}

}  // namespace headrace
