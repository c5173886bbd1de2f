// Why a function was traced again, in words, for all languages.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace headrace {

// The reasons of a function's last retraces. For one thread at a time.
class Retraces {
 public:
  // So many traces, the newest, a new one is compared with.
  static constexpr size_t kMostCompared = 16;
  static constexpr size_t kMostTold = 64;

  // A part of the arguments that differs between two traces.
  struct Change {
    std::string path, before, now;
  };
  // Which of the traces, the newest last, is most similar to a new one, by the
  // numbers of parts in which they differ; none without any.
  static std::optional<size_t> Nearest(const std::vector<size_t>& changes);
  // "x changed from 1 to 2; ...".
  static std::string Reason(const std::vector<Change>& changes);

  void Add(int number, const std::string& reason);
  // "trace 2: x changed from 1 to 2", the oldest first.
  std::vector<std::string> told() const { return {told_.begin(), told_.end()}; }

 private:
  std::deque<std::string> told_;
};

}  // namespace headrace
