// PrefetchDataset: a thread that is ahead of who reads.
#include "data/transform/prefetch.h"

#include <condition_variable>
#include <deque>
#include <thread>

#include "data/dataset_op.h"

namespace headrace {
namespace {

// A buffer whose size is left to us starts with this and doubles whenever it
// runs empty, up to the other.
constexpr int64_t kFirstLimit = 2;
constexpr int64_t kLastLimit = 64;

class PrefetchDataset : public InputDataset {
 public:
  PrefetchDataset(ElementSpec spec, DatasetPtr input, int64_t size)
      : InputDataset(std::move(spec), std::move(input)), size_(size) {}
  StringView kind() const override { return "Prefetch"; }

  class Iterator : public InputIterator<PrefetchDataset> {
   public:
    Iterator(const PrefetchDataset* d, std::string prefix)
        : InputIterator(d, std::move(prefix)),
          limit_(d->size_ < 0 ? kFirstLimit : d->size_) {}
    ~Iterator() override { Stop(); }

    Status Next(PullContext& c, Element* out, bool* end) override;
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    struct Item {
      Element element;
      Status status;
    };
    void Stop() {
      if (!thread_.joinable()) return;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
      }
      room_.notify_all();
      thread_.join();
      stop_ = false;
    }
    void Work(PullContext& c);

    std::thread thread_;  // begun by the first Next
    // Held by the thread while it pulls and puts down what came: who holds it
    // sees a place between two elements. Before mutex_.
    std::mutex input_mutex_;
    std::mutex mutex_;  // guards all below
    std::condition_variable room_, filled_;
    std::deque<Item> buffer_;
    int64_t limit_;
    bool stop_ = false, finished_ = false, waiting_ = false, begun_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;  // negative: as it turns out well
};

void PrefetchDataset::Iterator::Work(PullContext& c) {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      room_.wait(lock, [&] {
        return stop_ || static_cast<int64_t>(buffer_.size()) < limit_;
      });
      if (stop_) return;
    }
    std::lock_guard<std::mutex> pulling(input_mutex_);
    Item item;
    bool end = false;
    item.status = NextInput(c, &item.element, &end);
    const bool cancelled = c.token->cancelled();
    std::lock_guard<std::mutex> lock(mutex_);
    if (end && item.status.ok()) {
      finished_ = true;
    } else {
      buffer_.push_back(std::move(item));
    }
    if (cancelled) finished_ = true;
    if (waiting_) filled_.notify_one();
    if (finished_) return;
  }
}

Status PrefetchDataset::Iterator::Next(PullContext& c, Element* out,
                                       bool* end) {
  if (dataset().size_ == 0) return NextInput(c, out, end);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!begun_) {
    begun_ = true;
    c.has_threads = true;
    thread_ = std::thread([this, &c] { Work(c); });
  }
  if (buffer_.empty() && !finished_) {
    if (dataset().size_ < 0) limit_ = std::min(2 * limit_, kLastLimit);
    waiting_ = true;
    while (buffer_.empty() && !finished_) {
      filled_.wait_for(lock, std::chrono::milliseconds(100));
      HR_RETURN_IF_ERROR(c.CheckCancelled());
    }
    waiting_ = false;
  }
  if (buffer_.empty()) {
    *end = true;
    return c.CheckCancelled();
  }
  Status s = std::move(buffer_.front().status);
  *out = std::move(buffer_.front().element);
  buffer_.pop_front();
  lock.unlock();
  room_.notify_one();
  return s;
}

Status PrefetchDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  std::lock_guard<std::mutex> pulling(input_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  w.PutInt(prefix(), "buffer_size", static_cast<int64_t>(buffer_.size()));
  std::vector<Element> elements;
  for (const Item& item : buffer_) {
    HR_RETURN_IF_ERROR(item.status);
    elements.push_back(item.element);
  }
  w.PutElements(prefix(), "buffer", elements);
  return InputIterator::Save(c, w);
}

Status PrefetchDataset::Iterator::Restore(PullContext& c,
                                          const StateReader& r) {
  Stop();
  std::vector<Element> elements;
  HR_RETURN_IF_ERROR(r.GetElements(prefix(), "buffer", &elements));
  HR_RETURN_IF_ERROR(InputIterator::Restore(c, r));
  std::lock_guard<std::mutex> lock(mutex_);
  buffer_.clear();
  for (Element& e : elements) buffer_.push_back({std::move(e), OkStatus()});
  begun_ = finished_ = false;
  return OkStatus();
}

Status MakePrefetch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "buffer_size"));
  if (size < -1) {
    return InvalidArgument(
        "buffer_size must be >= 0 or set buffer_size to be "
        "-1 for auto-tuning");
  }
  return SetDataset<PrefetchDataset>(c, std::move(spec), std::move(input),
                                     size);
}

HR_OP(PrefetchDataset)
    .Input("input_dataset: variant")
    .Input("buffer_size: int64")
    .Output("handle: variant") HR_DATASET_SPEC.Attr("slack_period: int = 0")
    .Attr("legacy_autotune: bool = true")
    .Attr("buffer_size_min: int = 0")
    .Attr("metadata: string = ''")
    .Doc("The input, made ahead of time by a thread.")
        HR_DATASET_END(MakePrefetch);

}  // namespace

DatasetPtr Prefetched(DatasetPtr input, int64_t size) {
  ElementSpec spec = input->spec();
  return std::make_shared<const PrefetchDataset>(std::move(spec),
                                                 std::move(input), size);
}

}  // namespace headrace
