// Any bytes as calls of the coordination service, one after the other: a byte
// says which method, or that time goes on, the next two how long its message
// is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "distributed/coordination/service.h"
#include "distributed/test_call.h"

namespace headrace::distributed {
namespace {

constexpr int kMostCalls = 64;
constexpr std::chrono::milliseconds kMeanwhile{1000};

void Ask(const uint8_t* data, size_t size) {
  CoordinationOptions options;
  options.tasks = {{"w", 0}, {"w", 1}};
  options.incarnation = 7;
  int lost = 0;
  options.lost = [&lost](const Status&) { ++lost; };
  ManualLoop* loop = nullptr;
  options.make_loop = [&loop]() -> StatusOr<std::unique_ptr<EventLoop>> {
    auto made = std::make_unique<ManualLoop>();
    loop = made.get();
    return StatusOr<std::unique_ptr<EventLoop>>(std::move(made));
  };
  const auto service = std::make_shared<CoordinationService>(options);
  service->Expect({{"w", 0}, {"w", 1}});
  const Methods methods = CoordinationService::Methods(service);
  std::vector<std::shared_ptr<TestCall>> calls;
  for (int i = 0; i < kMostCalls && size >= 3; ++i) {
    const size_t which = data[0] % (methods.size() + 1);
    const size_t length =
        std::min<size_t>(data[1] | size_t{data[2]} << 8, size - 3);
    std::string bytes(reinterpret_cast<const char*>(data) + 3, length);
    data += 3 + length;
    size -= 3 + length;
    if (which == methods.size()) {
      if (loop) loop->RunUntil(loop->Now() + kMeanwhile);
      continue;
    }
    const auto method = std::next(methods.begin(), which);
    calls.push_back(StartCall(methods, method->first, std::move(bytes)));
    // Every other caller that waits goes away meanwhile.
    if (calls.size() % 2 == 0) calls.back()->Cancel();
  }
  service->Stop(Cancelled("over"));
  // Who waits is told so, unless its caller is gone.
  for (size_t i = 0; i < calls.size(); i += 2) {
    if (!calls[i]->ended()) __builtin_trap();
  }
}

}  // namespace
}  // namespace headrace::distributed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::distributed::Ask(data, size);
  return 0;
}
