#include "base/remote/remote_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/mutex.h"

namespace headrace {
namespace {

constexpr uint64_t kPart = 16 << 20;
constexpr uint64_t kSize = 5 * kPart + 12345;

char ByteAt(uint64_t offset) { return static_cast<char>(offset * 31 >> 7); }

// A file whose bytes tell where they are.
class Numbers : public RangeSource {
 public:
  StatusOr<size_t> Fetch(uint64_t offset, absl::Span<char> out) override {
    {
      const MutexLock lock(mutex);
      most = std::max(most, ++under_way);
      changed.NotifyAll();
    }
    StatusOr<size_t> n = Answer(offset, out);
    const MutexLock lock(mutex);
    --under_way;
    return n;
  }

  virtual StatusOr<size_t> Answer(uint64_t offset, absl::Span<char> out) {
    if (offset >= ends) return size_t{0};
    const size_t n = std::min<uint64_t>(out.size(), ends - offset);
    for (size_t i = 0; i < n; ++i) out[i] = ByteAt(offset + i);
    return n;
  }

  uint64_t ends = kSize;
  Mutex mutex;
  CondVar changed;
  int under_way ABSL_GUARDED_BY(mutex) = 0, most ABSL_GUARDED_BY(mutex) = 0;
};

StatusOr<size_t> ReadAll(const std::shared_ptr<RangeSource>& source,
                         std::vector<char>& out) {
  return NewRemoteReader(source, kSize, "numbers")
      ->ReadSome(0, absl::MakeSpan(out));
}

TEST(RemoteReader, LargeReadsComeInPartsThatAreOnTheirWayTogether) {
  struct Together : Numbers {
    StatusOr<size_t> Answer(uint64_t offset, absl::Span<char> out) override {
      {  // The first waits for a second.
        const MutexLock lock(mutex);
        while (most < 2) changed.Wait(mutex);
      }
      return Numbers::Answer(offset, out);
    }
  };
  const auto source = std::make_shared<Together>();
  std::vector<char> out(kSize);
  EXPECT_EQ(*ReadAll(source, out), kSize);
  for (uint64_t i = 0; i < kSize; ++i) ASSERT_EQ(out[i], ByteAt(i)) << i;
  const MutexLock lock(source->mutex);
  EXPECT_LE(source->most, 3);
}

TEST(RemoteReader, AFileThatBecameShorterEndsWhereItDoes) {
  const auto source = std::make_shared<Numbers>();
  source->ends = 2 * kPart + 100;
  std::vector<char> out(kSize);
  EXPECT_EQ(*ReadAll(source, out), source->ends);
  for (uint64_t i = 0; i < source->ends; ++i) ASSERT_EQ(out[i], ByteAt(i));
}

TEST(RemoteReader, ThePartThatFailsEndsTheOthersAndIsTold) {
  struct Failing : Numbers {
    StatusOr<size_t> Answer(uint64_t offset, absl::Span<char> out) override {
      if (offset == kPart) return Unavailable("part 1 is away");
      // All others take as long as somebody wants them.
      while (!StopRequested()) std::this_thread::yield();
      return CheckStop();
    }
  };
  const auto source = std::make_shared<Failing>();
  std::vector<char> out(kSize);
  const StatusOr<size_t> n = ReadAll(source, out);
  EXPECT_EQ(n.status().message(), "part 1 is away");
  // Nobody writes to `out` any more.
  const MutexLock lock(source->mutex);
  EXPECT_EQ(source->under_way, 0);
}

TEST(RemoteReader, CancelledReadsEnd) {
  struct Waiting : Numbers {
    StatusOr<size_t> Answer(uint64_t, absl::Span<char>) override {
      while (!StopRequested()) std::this_thread::yield();
      return CheckStop();
    }
  };
  const auto source = std::make_shared<Waiting>();
  CancellationToken token;
  std::thread canceller([&] {
    const MutexLock lock(source->mutex);
    while (source->most < 3) source->changed.Wait(source->mutex);
    token.Cancel();
  });
  const StopScope stop(&token);
  std::vector<char> out(kSize);
  EXPECT_TRUE(absl::IsCancelled(ReadAll(source, out).status()));
  canceller.join();
}

}  // namespace
}  // namespace headrace
