// Profiles of a program: what its threads did when, as TensorBoard's profile
// page shows it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "headrace/export.h"

namespace headrace::tf::profiler {

struct Options {
  // 0: no events; 1: scopes and calls of traced functions; 2 and more: eager
  // ops, the plans of functions and their steps, too.
  int host_tracer_level = 2;
  // Events that begin earlier than so long after the start are left out.
  std::chrono::milliseconds delay{0};
};

// Begins the profile of the process, all of its threads. One can be under way,
// started in Python or in C++: else it is kAlreadyExists. Events take up to 128
// MiB; what comes later is counted.
HR_API void Start(const std::string& logdir, const Options& options = {});

// Ends it and writes LOGDIR/plugins/profile/TIME/HOST.xplane.pb, at once and
// whole, or nothing where `save` is false. The file's path, or "". Throws
// kUnavailable where no profile is under way; where the file cannot be written
// the profile has ended, too.
HR_API std::string Stop(bool save = true);

// An event from its making to its end, with attributes:
//   profiler::Scope step("train");
//   step.Set("step_num", i).Set("_r", 1);  // TensorBoard shows it as a step
// Nothing where no profile is under way when it begins: that costs an atomic
// load. It ends on the thread on which it began.
class HR_API Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  Scope& Set(std::string_view attribute, std::integral auto value) {
    if constexpr (std::is_signed_v<decltype(value)>) {
      return SetSigned(attribute, value);
    } else {
      return SetUnsigned(attribute, value);
    }
  }
  Scope& Set(std::string_view attribute, double value);
  Scope& Set(std::string_view attribute, std::string_view value);

 private:
  Scope& SetSigned(std::string_view attribute, int64_t value);
  Scope& SetUnsigned(std::string_view attribute, uint64_t value);

  struct State;
  const std::unique_ptr<State> state_;  // null: nobody listens
};

}  // namespace headrace::tf::profiler
