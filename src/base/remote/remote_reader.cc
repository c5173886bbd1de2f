#include "base/remote/remote_reader.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <vector>

#include "base/cancellation.h"
#include "base/fork_mutex.h"
#include "base/guard.h"
#include "base/job_threads.h"
#include "base/mutex.h"
#include "base/sandbox.h"

namespace headrace {
namespace {

// The first block of reads in order, and the largest: at a gigabit, 16 MiB take
// 0.13 s, beside which a request's few are little.
constexpr uint64_t kFirstBlock = 256 << 10, kLargestBlock = 16 << 20;
// A read elsewhere fetches this much: indices are read in pieces of that.
constexpr uint64_t kLoneBlock = 64 << 10;
// From here on, a read takes no copy.
constexpr size_t kDirectRead = 2 << 20;
constexpr int kBlocksAhead = 2;
constexpr size_t kMostBlocks = 3;  // a reader keeps
constexpr int64_t kMostAhead = int64_t{256} << 20;
constexpr std::chrono::milliseconds kLook{100};

std::atomic<int64_t> bytes_ahead{0};  // of all readers

struct Block {
  Block(uint64_t o, size_t n)
      : offset(o),
        capacity(n),
        bytes(std::make_unique_for_overwrite<char[]>(n)) {
    bytes_ahead += static_cast<int64_t>(n);
  }
  ~Block() { bytes_ahead -= static_cast<int64_t>(capacity); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  uint64_t end() const { return offset + capacity; }

  absl::Span<char> room() { return {bytes.get(), capacity}; }

  const uint64_t offset;
  const size_t capacity;
  const std::unique_ptr<char[]> bytes;
  const pid_t pid = getpid();  // whose thread fetches it
  // Of the reader's mutex.
  bool ready = false;
  size_t size = 0;  // how many bytes there are
  Status status;
};
using BlockPtr = std::shared_ptr<Block>;

// What fetching threads share with the reader, which may go before them.
struct Shared {
  explicit Shared(std::shared_ptr<RangeSource> s) : source(std::move(s)) {}
  const std::shared_ptr<RangeSource> source;
  CancellationToken token;
  Mutex mutex;
  CondVar changed;
  std::list<BlockPtr> blocks ABSL_GUARDED_BY(mutex);  // the last used: last

  void Fetch(const BlockPtr& block) {
    StatusOr<size_t> n = size_t{0};
    const Status status = Guarded("reading ahead", [&] {
      n = source->Fetch(block->offset, block->room());
      return n.status();
    });
    const MutexLock lock(mutex);
    block->status = status;
    block->size = n.ok() ? std::min(*n, block->capacity) : 0;
    block->ready = true;
    changed.NotifyAll();
  }
};

// A large read, in parts of which some are on their way at once: the time of
// one request, and what a server takes to begin, is hidden by another.
class PartedRead {
 public:
  PartedRead(RangeSource& source, uint64_t offset, absl::Span<char> out)
      : source_(source),
        offset_(offset),
        out_(out),
        parts_((out.size() - 1) / kLargestBlock + 1),
        came_(parts_) {}

  // How many bytes there are; all threads that write to `out` have ended then.
  StatusOr<size_t> Run() {
    const StopSources stops = StopSources::OfThisThread();
    const CarriedSandboxes sandboxes;
    for (int i = 0; i < kBlocksAhead; ++i) {
      Began(1);
      const Status begun = RunOnOwnThread([&] {
        const AdoptedStops adopted(stops);
        sandboxes.Run([&] { FetchParts(); });
        Began(-1);
      });
      if (begun.ok()) continue;
      Began(-1);  // no thread: the others, or this one, fetch all
      break;
    }
    FetchParts();
    const MutexLock lock(mutex_);
    while (running_ > 0) changed_.Wait(mutex_);
    HR_RETURN_IF_ERROR(status_);
    size_t done = 0;
    for (size_t i = 0; i < parts_; ++i) {
      done += came_[i];
      if (came_[i] < Part(i).size()) break;  // the file has become shorter
    }
    return done;
  }

 private:
  absl::Span<char> Part(size_t i) const {
    return out_.subspan(i * kLargestBlock, kLargestBlock);
  }

  void Began(int threads) {
    const MutexLock lock(mutex_);
    running_ += threads;
    if (running_ == 0) changed_.NotifyAll();
  }

  // One part after the other that nobody has begun, until one fails.
  void FetchParts() {
    const StopScope stop(&failed_);
    for (size_t i; (i = next_++) < parts_;) {
      StatusOr<size_t> n = size_t{0};
      const Status status = Guarded("reading in parts", [&] {
        n = source_.Fetch(offset_ + i * kLargestBlock, Part(i));
        return n.status();
      });
      const MutexLock lock(mutex_);
      if (status.ok()) {
        came_[i] = std::min(*n, Part(i).size());
        continue;
      }
      // The first one tells why; the others end because of it.
      status_.Update(status);
      failed_.Cancel();
      return;
    }
  }

  RangeSource& source_;
  const uint64_t offset_;
  const absl::Span<char> out_;
  const size_t parts_;
  std::atomic<size_t> next_{0};
  CancellationToken failed_;
  Mutex mutex_;
  CondVar changed_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> came_ ABSL_GUARDED_BY(mutex_);
};

class RemoteReader : public RandomAccessFile {
 public:
  RemoteReader(std::shared_ptr<RangeSource> source, uint64_t size,
               std::string path)
      : shared_(std::make_shared<Shared>(std::move(source))),
        size_(size),
        path_(std::move(path)) {}
  ~RemoteReader() override { shared_->token.Cancel(); }

  StatusOr<size_t> ReadSome(uint64_t offset,
                            absl::Span<char> out) const override {
    StatusOr<size_t> result = size_t{0};
    HR_RETURN_IF_ERROR(Guarded(path_, [&] {
      result = ReadChecked(offset, out);
      return result.status();
    }));
    return result;
  }
  uint64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }

 private:
  StatusOr<size_t> ReadChecked(uint64_t offset, absl::Span<char> out) const {
    if (offset >= size_) return size_t{0};
    out = out.subspan(0, std::min<uint64_t>(out.size(), size_ - offset));
    const uint64_t behind = next_.exchange(offset + out.size());
    const bool in_order = offset >= behind && offset - behind <= kLoneBlock;
    size_t done = 0;
    while (done < out.size()) {
      HR_ASSIGN_OR_RETURN(const size_t n,
                          ReadPart(offset + done, out.subspan(done), in_order));
      if (n == 0) break;  // the file has become shorter
      done += n;
    }
    return done;
  }

  // Some bytes from there on; 0 only where there are none.
  StatusOr<size_t> ReadPart(uint64_t offset, absl::Span<char> out,
                            bool in_order) const {
    BlockPtr block = Find(offset);
    if (block == nullptr && out.size() >= kDirectRead) {
      if (out.size() <= kLargestBlock) {
        return shared_->source->Fetch(offset, out);
      }
      return PartedRead(*shared_->source, offset, out).Run();
    }
    if (block == nullptr) {
      block = NewBlock(
          offset,
          in_order ? NextSize() : std::max<uint64_t>(kLoneBlock, out.size()));
      // (Of many a file only the first bytes are read.)
      if (in_order && offset > 0) ReadAhead(block->end());
      shared_->Fetch(block);
    } else if (in_order) {
      ReadAhead(block->end());
    }
    HR_RETURN_IF_ERROR(Await(*block));
    const MutexLock lock(shared_->mutex);
    if (!block->status.ok()) {
      shared_->blocks.remove(block);  // the next read tries again
      return block->status;
    }
    const uint64_t at = offset - block->offset;
    if (at >= block->size) return size_t{0};
    const size_t n = std::min<uint64_t>(out.size(), block->size - at);
    std::memcpy(out.data(), &block->bytes[at], n);
    return n;
  }

  BlockPtr Find(uint64_t offset) const {
    const MutexLock lock(shared_->mutex);
    auto& blocks = shared_->blocks;
    for (auto i = blocks.begin(); i != blocks.end(); ++i) {
      const bool lost = !(*i)->ready && (*i)->pid != getpid();
      if (lost || offset < (*i)->offset || offset >= (*i)->end()) continue;
      blocks.splice(blocks.end(), blocks, i);
      return blocks.back();
    }
    return nullptr;
  }

  uint64_t NextSize() const {
    if (bytes_ahead.load() >= kMostAhead) return kFirstBlock;
    const uint64_t size = block_size_.load();
    block_size_ = std::min(size * 2, kLargestBlock);
    return size;
  }

  BlockPtr NewBlock(uint64_t offset, uint64_t size) const {
    auto block =
        std::make_shared<Block>(offset, std::min(size, size_ - offset));
    const MutexLock lock(shared_->mutex);
    auto& blocks = shared_->blocks;
    blocks.push_back(block);
    // What was used longest ago goes.
    if (blocks.size() > kMostBlocks) blocks.pop_front();
    return block;
  }

  // Has what lies behind `offset` fetched.
  void ReadAhead(uint64_t offset) const {
    for (int i = 0; i < kBlocksAhead && offset < size_; ++i) {
      BlockPtr block = Find(offset);
      if (block == nullptr) {
        if (bytes_ahead.load() >= kMostAhead) return;
        block = NewBlock(offset, NextSize());
        const Status begun = RunOnOwnThread(
            [shared = shared_, block, sandboxes = CarriedSandboxes()] {
              const StopScope stop(&shared->token);
              sandboxes.Run([&] { shared->Fetch(block); });
            });
        if (!begun.ok()) {  // no thread: it is fetched when it is read
          const MutexLock lock(shared_->mutex);
          shared_->blocks.remove(block);
          return;
        }
      }
      offset = block->end();
    }
  }

  Status Await(const Block& block) const {
    for (;;) {
      {
        const MutexLock lock(shared_->mutex);
        if (block.ready) return OkStatus();
        shared_->changed.WaitFor(shared_->mutex, kLook);
        if (block.ready) return OkStatus();
      }
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }

  const std::shared_ptr<Shared> shared_;
  const uint64_t size_;
  const std::string path_;
  mutable std::atomic<uint64_t> next_{0};  // where a read in order begins
  mutable std::atomic<uint64_t> block_size_{kFirstBlock};
};

}  // namespace

std::unique_ptr<RandomAccessFile> NewRemoteReader(
    std::shared_ptr<RangeSource> source, uint64_t size, std::string path) {
  return std::make_unique<RemoteReader>(std::move(source), size,
                                        std::move(path));
}

}  // namespace headrace
