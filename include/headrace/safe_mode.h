// Running what strangers made: which ops may run, and what they may use.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/export.h"

namespace headrace::tf {

// What a stranger's model may do, enforced by the engine whenever the model
// runs, not by a look at it alone:
//
//   tf::SafeMode mode;
//   mode.memory = 1 << 30;
//   mode.seconds = 5;
//   auto model = tf::SavedModel::Load("folder", {.safe_mode = mode});
//
// Ops that touch nothing but their tensors run. Others throw kPermissionDenied,
// with node, op, function and what would permit them. The model may read its
// variables and the assets that it lists, nothing else by way of "..", links or
// names that its program makes.
struct SafeMode {
  // Names of ops, or of what ops touch: "files" ("reads", "writes"), "network",
  // "python", "processes", "prints".
  std::vector<std::string> allow;
  std::vector<std::string> deny;  // names of ops
  // Where it is not empty, ops that are in neither it nor `allow` are refused.
  std::vector<std::string> only;

  // Limits; 0: none. Passing one throws kResourceExhausted, kDeadlineExceeded
  // for `seconds`.
  int64_t memory = int64_t{4} << 30;  // bytes that it holds at one time
  double seconds = 60;                // of a call from outside, or the loading
  int64_t nodes = 1'000'000;          // of all its graphs and functions
  int64_t recursion = 200;            // calls of functions within each other
  int64_t output = int64_t{1} << 30;  // bytes of one tensor

  // The policy as text: lines "allow: prints ReadFile", "memory: 512 MiB",
  // "time: 2.5", "recursion: none". What lines do not say is as by default.
  // Throws kInvalidArgument, which names the line.
  HR_API static SafeMode FromText(const std::string& text);
  HR_API std::string ToText() const;

  // While it lives, what its thread runs, makes and loads is in the mode, and
  // graphs and functions made meanwhile stay so. Scopes nest; each call made in
  // it has the time that the mode grants. Throws kInvalidArgument for names of
  // ops that are not there.
  class HR_API Scope {
   public:
    explicit Scope(const SafeMode& mode);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // Bytes that count against the limit now.
    int64_t memory_in_use() const;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };
};

}  // namespace headrace::tf
