#include "headrace/cancellation.h"

#include <algorithm>

#include "base/cancellation.h"

namespace headrace::tf {
namespace {

// As late as the clock can tell, if need be.
CancellationToken::Clock::time_point After(std::chrono::nanoseconds timeout) {
  constexpr std::chrono::nanoseconds kMost = std::chrono::hours(24 * 365 * 100);
  return CancellationToken::Clock::now() + std::min(timeout, kMost);
}

}  // namespace

Cancellation::Cancellation() : token_(std::make_shared<CancellationToken>()) {}

Cancellation::Cancellation(std::chrono::nanoseconds timeout)
    : token_(std::make_shared<CancellationToken>(After(timeout))) {}

void Cancellation::Cancel() const { token_->Cancel(); }

bool Cancellation::cancelled() const { return token_->cancelled(); }

CancellationScope::CancellationScope(const Cancellation& cancellation)
    : cancellation_(cancellation),
      scope_(std::make_unique<StopScope>(cancellation_.token_.get())) {}

CancellationScope::~CancellationScope() = default;

}  // namespace headrace::tf
