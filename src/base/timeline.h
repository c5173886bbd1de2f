// What threads do when: the steps of plans, eager ops, calls of functions, and
// scopes of the user's. While nobody listens an event costs one relaxed load.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace headrace::timeline {

// Nanoseconds of std::chrono::steady_clock.
int64_t Now();

using Attribute = std::variant<int64_t, uint64_t, double, std::string>;
// In the order in which they were given.
using Attributes = std::vector<std::pair<std::string, Attribute>>;

// A tensor that a step made.
struct MadeTensor {
  int dtype;  // as DataType numbers them
  std::vector<int64_t> dims;
  int64_t bytes;
  uint64_t address;
  bool taken;  // its memory is no input's, but was taken for it
};

struct Event {
  enum class Kind : uint8_t {
    kScope,     // of the user's
    kCall,      // of a traced function, as the user calls it
    kFunction,  // a function's plan
    kOp,        // an eager op
    kStep,      // of a plan
  };
  Kind kind;
  int thread = 0;  // as the system numbers them; set by Record
  std::string name;
  std::string op;  // of a step
  int64_t begin = 0, end = 0;
  Attributes attributes;
  std::vector<MadeTensor> made = {};  // by a step, in the order of its outputs
};

// How many listen; see On.
inline constinit std::atomic<int> listeners{0};
// Whether events are wanted.
inline bool On() { return listeners.load(std::memory_order_relaxed) != 0; }

// Tells all who listen. Names longer than 1 KiB are cut; what finds no memory
// is left out and counted.
[[gnu::cold]] void Record(Event event) noexcept;

// An event without attributes that ends now.
[[gnu::cold]] void RecordSpan(Event::Kind kind, StringView name, StringView op,
                              int64_t begin,
                              std::vector<MadeTensor> made = {}) noexcept;

// An event from its making to its end. The texts must live as long.
class Span {
 public:
  Span(Event::Kind kind, StringView name, StringView op = {})
      : begin_(On() ? Now() : 0), kind_(kind), name_(name), op_(op) {}
  ~Span() {
    if (begin_ != 0) [[unlikely]]
      RecordSpan(kind_, name_, op_, begin_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const int64_t begin_;
  const Event::Kind kind_;
  const StringView name_, op_;
};

// What the calling thread does while it lives, and what threads do for it that
// join.
class OfThisThread {
 public:
  OfThisThread();
  ~OfThisThread();
  OfThisThread(const OfThisThread&) = delete;
  OfThisThread& operator=(const OfThisThread&) = delete;

  // What ended so far, in the order of the ends.
  std::deque<Event> events() const;

  // The innermost one of the calling thread; null where there is none.
  static OfThisThread* Current();
  // While it lives, what its thread does is told to `joined`, too, which lives
  // longer; null changes nothing.
  class Joined {
   public:
    explicit Joined(OfThisThread* joined);
    ~Joined();
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

   private:
    OfThisThread* const saved_;
  };

 private:
  friend void Record(Event event) noexcept;
  void Add(const Event& event, size_t bytes);

  OfThisThread* const outer_;
  mutable Mutex mutex_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What all threads did from one moment to another.
struct Recording {
  int64_t begin = 0, end = 0;
  std::deque<Event> events;
  std::map<int, std::string> threads;  // their names
  int64_t left_out = 0;                // events beyond 128 MiB
};

// Begins the process' recording, of events that begin `delay` ns from now or
// later. Level 0 has none, 1 scopes and calls, 2 and more all. AlreadyExists
// where one is under way.
Status Start(int level, int64_t delay);
// Ends it. Unavailable where none is under way.
StatusOr<Recording> Stop();

}  // namespace headrace::timeline
