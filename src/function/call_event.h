// The events of calls of traced functions, in both languages.
#pragma once

#include "base/timeline.h"

namespace headrace {

// A call as the user makes it, an event from its making to its end. For when
// timeline::On().
class CallEvent {
 public:
  explicit CallEvent(StringView name) : begin_(timeline::Now()), name_(name) {}
  ~CallEvent();
  CallEvent(const CallEvent&) = delete;
  CallEvent& operator=(const CallEvent&) = delete;

  // What kind of call it was, in upstream's words; nothing is said of calls
  // that fail.
  void SetEager();     // the function's Python, not a trace
  void SetConcrete();  // one trace, chosen by the user
  // How many traces the function had and has.
  void SetTraces(int64_t before, int64_t after);

 private:
  const int64_t begin_;
  std::string name_;
  timeline::Attributes attributes_;
};

}  // namespace headrace
