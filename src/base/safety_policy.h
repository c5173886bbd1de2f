// What a stranger's model may do and use, as a value and as text.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/status.h"

namespace headrace {

// What an op touches outside of its inputs and outputs.
enum class Reach : uint8_t {
  kReadsFiles,   // reads or lists files, or asks whether they are there
  kWritesFiles,  // makes, changes, renames or deletes files
  kNetwork,      // talks to other machines
  kPython,       // calls Python functions of this program
  kProcesses,    // starts processes or loads libraries
  kPrints,       // writes to the program's outputs
};
inline constexpr int kReaches = 6;
// "reads", "writes", "network", "python", "processes", "prints".
const char* WordOf(Reach r);

// A set of them.
class Reaches {
 public:
  void Add(Reach r) { bits_ |= uint8_t{1} << static_cast<int>(r); }
  bool Has(Reach r) const { return (bits_ >> static_cast<int>(r)) & 1; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const Reaches&) const = default;

 private:
  uint8_t bits_ = 0;
};

// Ops that touch nothing outside of their tensors run, unless they are denied
// or `only` names others. What is allowed by name may run whatever it touches.
// The defaults are beyond what honest models come near.
struct SafetyPolicy {
  Reaches allowed;
  std::set<std::string, std::less<>> allowed_ops, denied_ops;
  // Where it is not empty, no others run.
  std::set<std::string, std::less<>> only_ops;

  // 0: no limit.
  int64_t memory = int64_t{4} << 30;  // bytes in use at one time
  int64_t time_ns = 60'000'000'000;   // of one call from outside
  int64_t nodes = 1'000'000;  // in its graphs and functions, and in a plan
  int64_t recursion = 200;    // calls of functions within each other
  int64_t output = int64_t{1} << 30;  // bytes of one tensor

  // Of lines "allow: prints ReadFile", "deny: OP", "only: OP OP",
  // "memory: 512 MiB", "time: 2.5", "nodes: 10000", "recursion: none", in any
  // order; '#' begins a comment. What a line does not say is as above. "files"
  // is "reads writes". InvalidArgument names the line.
  static StatusOr<SafetyPolicy> Parse(StringView text);
  // Parse gives the same policy again.
  std::string ToString() const;
  bool operator==(const SafetyPolicy&) const = default;

  // Allows a word of WordOf, "files", or an op by its name; InvalidArgument for
  // what is neither a word nor may be the name of an op.
  Status Allow(StringView word);
};

// Whether it may be an op's name: [A-Z_][A-Za-z0-9_>]*, up to 256 characters.
bool MayNameOp(StringView name);

}  // namespace headrace
