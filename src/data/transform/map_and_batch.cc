// MapAndBatchDataset: a function of every element, and batches of the results.
#include <cstring>
#include <deque>

#include "data/transform/batch.h"
#include "data/transform/batch_results.h"

namespace headrace {
namespace {

class MapAndBatchDataset : public InputDataset {
 public:
  MapAndBatchDataset(ElementSpec spec, std::shared_ptr<const MappedDataset> map,
                     int64_t size, bool drop)
      : InputDataset(std::move(spec), map->inputs()[0]),
        map_(std::move(map)),
        size_(size),
        drop_remainder_(drop) {}
  StringView kind() const override { return "MapAndBatch"; }
  int64_t batch_size() const override { return size_; }
  int64_t Count() const override {
    const int64_t n = map_->Cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ != 0 && !drop_remainder_);
  }

  class Iterator : public IteratorOf<MapAndBatchDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      map_ = dataset().map_->Kept(prefix());
      return map_->Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!ready_.empty()) [[unlikely]] {
        Pulled p = std::move(ready_.front());
        ready_.pop_front();
        *out = std::move(p.element);
        return p.status;
      }
      *end = ended_;
      if (ended_) return OkStatus();
      Status failed;
      while (begun_ < static_cast<size_t>(dataset().size_) && !ended_) {
        if (elements_.size() == begun_) elements_.emplace_back();
        Status s = map_->Next(c, &elements_[begun_], &ended_);
        if (!s.ok()) [[unlikely]] {
          // A stop is not an error of the element: it must not become one of
          // the batch.
          HR_RETURN_IF_ERROR(c.CheckCancelled());
          // A batch with an element that failed fails as a whole.
          failed.Update(s);
        }
        // The place counts also where the call failed: the batch is as long as
        // without the error.
        begun_ += !ended_;
      }
      return Finish(std::move(failed), out, end);
    }
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    Status Finish(Status failed, Element* out, bool* end) {
      const size_t n = begun_;
      begun_ = 0;
      *end = n == 0 || (dataset().drop_remainder_ &&
                        n < static_cast<size_t>(dataset().size_));
      Status s = *end ? OkStatus() : std::move(failed);
      if (s.ok() && !*end) {
        s = StackElements(absl::MakeSpan(elements_).first(n), out);
      }
      for (size_t i = 0; i < n; ++i) elements_[i].clear();
      return s;
    }

    std::unique_ptr<MapIterator> map_;
    std::vector<Element> elements_;  // kept for their memory
    size_t begun_ = 0;               // how many are of the next batch
    std::deque<Pulled> ready_;       // batches of a restored state
    bool ended_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::shared_ptr<const MappedDataset> map_;
  const int64_t size_;
  const bool drop_remainder_;
};

// The rows put into as many as a whole batch has.
StatusOr<Element> WholeBatch(absl::Span<const Element> elements, int64_t size) {
  Element rows;
  HR_RETURN_IF_ERROR(StackElements(elements, &rows));
  for (Tensor& t : rows) {
    if (t.dim(0) == size) continue;
    Shape shape = t.shape();
    shape.set_dim(0, size);
    HR_ASSIGN_OR_RETURN(shape, Shape::Make(shape.dims()));
    HR_ASSIGN_OR_RETURN(Tensor whole, Tensor::Allocate(t.dtype(), shape));
    // States must not hold stray bytes of memory.
    if (IsPlain(t.dtype())) std::memset(whole.raw(), 0, whole.bytes());
    Tensor to = whole.Rows(0, t.dim(0));
    CopyElements(t, to);
    t = std::move(whole);
  }
  return rows;
}

// What was mapped ahead goes into batches, the last of which may have room.
Status MapAndBatchDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  std::vector<Pulled> ahead;
  HR_RETURN_IF_ERROR(map_->SaveAhead(c, w, &ahead));
  // Elements of a batch that was begun before the state was asked for come
  // first.
  for (size_t i = begun_; i-- > 0;) {
    ahead.insert(ahead.begin(), Pulled{elements_[i], OkStatus()});
  }
  std::vector<BatchResult> results;
  for (const Pulled& p : ready_) {
    BatchResult b{p.element, dataset().size_, p.status, false};
    if (p.status.ok()) b.count = p.element[0].dim(0);
    b.ended = b.count < dataset().size_;
    results.push_back(std::move(b));
  }
  const size_t size = static_cast<size_t>(dataset().size_);
  for (size_t i = 0; i < ahead.size(); i += size) {
    BatchResult b;
    std::vector<Element> elements;
    for (size_t k = i; k < std::min(i + size, ahead.size()); ++k) {
      b.status.Update(ahead[k].status);
      if (b.status.ok()) elements.push_back(std::move(ahead[k].element));
    }
    b.count = static_cast<int64_t>(elements.size());
    if (b.status.ok()) {
      HR_ASSIGN_OR_RETURN(b.rows, WholeBatch(elements, dataset().size_));
    }
    results.push_back(std::move(b));
  }
  const int64_t calls =
      static_cast<int64_t>(ready_.size() * size + ahead.size());
  w.PutInt(prefix(), "call_counter", calls);
  return PutBatchResults(w, prefix(), results);
}

Status MapAndBatchDataset::Iterator::Restore(PullContext& c,
                                             const StateReader& r) {
  HR_ASSIGN_OR_RETURN(const int64_t calls,
                      r.GetCount(prefix(), "call_counter"));
  HR_ASSIGN_OR_RETURN(std::vector<BatchResult> results,
                      GetBatchResults(r, prefix(), dataset().spec()));
  ready_.clear();
  begun_ = 0;
  ended_ = false;
  const int64_t size = dataset().size_;
  for (size_t i = 0; i < results.size(); ++i) {
    BatchResult& b = results[i];
    // The last batch may still grow where the calls do not fill it.
    const bool open = i + 1 == results.size() && !b.ended && calls % size != 0;
    if (b.count > size || (open && b.count > calls % size)) {
      return DamagedState(prefix());
    }
    if (!b.status.ok()) {
      ready_.push_back({Element(), std::move(b.status)});
    } else if (open) {
      for (int64_t k = 0; k < b.count; ++k) {
        Element e;
        for (const Tensor& t : b.rows) e.push_back(RowOf(t, k));
        if (elements_.size() == begun_) elements_.emplace_back();
        elements_[begun_++] = std::move(e);
      }
    } else if (b.count == size || (b.count > 0 && !dataset().drop_remainder_)) {
      for (Tensor& t : b.rows) t = t.Rows(0, b.count);
      HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), b.rows));
      ready_.push_back({std::move(b.rows), OkStatus()});
    }
  }
  return map_->RestoreAhead(c, r, {});
}

}  // namespace

DatasetPtr MapAndBatch(ElementSpec spec,
                       std::shared_ptr<const MappedDataset> map, int64_t size,
                       bool drop_remainder) {
  return MakeNested<const MapAndBatchDataset>(std::move(spec), std::move(map),
                                              size, drop_remainder);
}

}  // namespace headrace
