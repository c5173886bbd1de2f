#include "headrace/profiler.h"

#include "base/timeline.h"
#include "cc/access.h"
#include "cc/errors.h"
#include "formats/profile.h"

namespace headrace::tf::profiler {

using internal::Check;

void Start(const std::string& logdir, const Options& options) {
  Check(
      StartProfile(logdir, {options.host_tracer_level, options.delay.count()}));
}

std::string Stop(bool save) { return Check(StopProfile(save)).path; }

struct Scope::State {
  timeline::Event event;

  template <typename T>
  void Set(std::string_view attribute, T value) {
    event.attributes.emplace_back(attribute, std::move(value));
  }
};

Scope::Scope(std::string_view name)
    : state_(timeline::On()
                 ? new State{{timeline::Event::Kind::kScope, 0,
                              std::string(name), "", timeline::Now()}}
                 : nullptr) {}

Scope::~Scope() {
  if (!state_) return;
  state_->event.end = timeline::Now();
  timeline::Record(std::move(state_->event));
}

Scope& Scope::SetSigned(std::string_view attribute, int64_t value) {
  if (state_) state_->Set(attribute, value);
  return *this;
}
Scope& Scope::SetUnsigned(std::string_view attribute, uint64_t value) {
  if (state_) state_->Set(attribute, value);
  return *this;
}
Scope& Scope::Set(std::string_view attribute, double value) {
  if (state_) state_->Set(attribute, value);
  return *this;
}
Scope& Scope::Set(std::string_view attribute, std::string_view value) {
  if (state_) state_->Set(attribute, std::string(value));
  return *this;
}

}  // namespace headrace::tf::profiler
