// CacheDataset: the elements, kept from the first walk on, in memory or in a
// file of records.
#include "base/mutex.h"
#include "data/anonymous_resource.h"
#include "data/dataset_op.h"
#include "data/transform/file_cache.h"
#include "op/resource.h"

namespace headrace {
namespace {

// The elements of one dataset, once a walk has come to its end.
class MemoryCache : public RemadeResource {
 public:
  const char* maker() const override { return "DummyMemoryCache"; }
  using Elements = std::shared_ptr<const std::vector<Element>>;
  std::string DebugString() const override { return "MemoryCache"; }
  // Null until a walk was complete.
  Elements get() const {
    MutexLock lock(mutex_);
    return elements_;
  }
  // The first to complete gives the elements.
  void Complete(std::vector<Element> elements) {
    MutexLock lock(mutex_);
    // Two walks may gather at the same time; the elements are the same, and the
    // first ones are in use already.
    if (elements_) return;
    elements_ =
        std::make_shared<const std::vector<Element>>(std::move(elements));
  }

 private:
  mutable Mutex mutex_;
  Elements elements_ ABSL_GUARDED_BY(mutex_);
};

class CacheDataset : public InputDataset {
 public:
  CacheDataset(ElementSpec spec, DatasetPtr input,
               std::shared_ptr<MemoryCache> cache)
      : InputDataset(std::move(spec), std::move(input)),
        cache_(std::move(cache)) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    return input().Reader(c);
  }
  StringView kind() const override { return "MemoryCache"; }

  class Iterator : public IteratorOf<CacheDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      // Decided at the first element and not at the start: another walk may
      // complete the cache until then.
      if (!input_ && !elements_ && !finished_) HR_RETURN_IF_ERROR(Open(c));
      if (elements_) {
        *end = at_ >= static_cast<int64_t>(elements_->size());
        if (!*end) *out = (*elements_)[at_++];
        return OkStatus();
      }
      *end = finished_;
      if (finished_) return OkStatus();
      HR_RETURN_IF_ERROR(input_->Next(c, out, end));
      if (!*end) {
        // Tensors are shared, so an element is kept without a copy.
        gathered_.push_back(*out);
        return OkStatus();
      }
      // Only a complete walk fills the cache; one that was given up leaves
      // nothing.
      dataset().cache_->Complete(std::move(gathered_));
      gathered_.clear();
      input_.reset();
      finished_ = true;
      return OkStatus();
    }
    // The elements are under the prefix where they are complete, else under
    // that of the walk that gathers them.
    Status Save(PullContext& c, StateWriter& w) override {
      if (!input_ && !elements_ && !finished_) HR_RETURN_IF_ERROR(Open(c));
      w.PutInt(prefix(), "global_shuffle_iterator_next_index", 0);
      const MemoryCache::Elements complete =
          finished_ ? dataset().cache_->get() : elements_;
      if (!complete) {
        HR_RETURN_IF_ERROR(PutAll(w, Impl(), gathered_));
        return input_->Save(c, w);
      }
      w.PutMark(prefix(), "cache_completed");
      w.PutInt(Impl(), "index",
               finished_ ? static_cast<int64_t>(complete->size()) : at_);
      return PutAll(w, prefix(), *complete);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      gathered_.clear();
      elements_.reset();
      input_.reset();
      finished_ = false;
      at_ = 0;
      const bool complete = r.Has(prefix(), "cache_completed");
      if (!complete && !r.Has(Impl(), "num_elements")) {
        return DamagedState(prefix());
      }
      HR_ASSIGN_OR_RETURN(std::vector<Element> elements,
                          r.GetBuffer(complete ? prefix() : Impl()));
      for (const Element& e : elements) {
        HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), e));
      }
      if (!complete) {
        gathered_ = std::move(elements);
        HR_ASSIGN_OR_RETURN(input_, dataset().input().Iterate(c, Impl()));
        return input_->Restore(c, r);
      }
      // A copy of the list: this walk may be in the middle of it.
      dataset().cache_->Complete(elements);
      // Without an index: who gathered them has come to the end.
      finished_ = !r.Has(Impl(), "index");
      if (finished_) return OkStatus();
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(Impl(), "index"));
      if (at_ > static_cast<int64_t>(elements.size())) {
        return DamagedState(prefix());
      }
      elements_ =
          std::make_shared<const std::vector<Element>>(std::move(elements));
      return OkStatus();
    }

   private:
    Status Open(PullContext& c) {
      elements_ = dataset().cache_->get();
      if (elements_) return OkStatus();
      HR_ASSIGN_OR_RETURN(input_, dataset().input().Iterate(c, Impl()));
      return OkStatus();
    }
    std::string Impl() const { return absl::StrCat(prefix(), "Impl"); }
    static Status PutAll(StateWriter& w, const std::string& prefix,
                         const std::vector<Element>& elements) {
      std::vector<const Element*> all;
      for (const Element& e : elements) all.push_back(&e);
      return w.PutBuffer(prefix, all);
    }
    MemoryCache::Elements elements_;  // set: these are read
    IteratorPtr input_;               // set: this is read and gathered
    std::vector<Element> gathered_;
    int64_t at_ = 0;
    bool finished_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::shared_ptr<MemoryCache> cache_;
};

Status MakeCache(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(std::string file, TextInput(c, 1, "filename"));
  if (!file.empty()) {
    HR_ASSIGN_OR_RETURN(DatasetPtr cache,
                        MakeFileCache(std::move(spec), input, file));
    NoteCall(c, *cache);
    return SetDataset(c, std::move(cache));
  }
  std::shared_ptr<MemoryCache> cache;
  // V2 may name a cache that several datasets (or several passes over one)
  // share.
  if (c.num_inputs() > 2 && c.input(2).num_elements() == 1 &&
      c.input(2).scalar<ResourceHandle>().resource) {
    HR_ASSIGN_OR_RETURN(
        cache, ResourceAs<MemoryCache>(c.input(2), c.services().resources));
  } else {
    cache = std::make_shared<MemoryCache>();
  }
  return SetDataset<CacheDataset>(c, std::move(spec), std::move(input),
                                  std::move(cache));
}

Status MakeMemoryCache(KernelContext& c) {
  SetAnonymous(c, std::make_shared<MemoryCache>());
  return OkStatus();
}

Status MakeDummyCache(KernelContext& c) {
  SetAnonymous(c, nullptr);
  return OkStatus();
}

HR_OP(CacheDataset)
    .Input("input_dataset: variant")
    .Input("filename: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The elements, kept from the first walk on.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCache>);

HR_OP(CacheDatasetV2)
    .Input("input_dataset: variant")
    .Input("filename: string")
    .Input("cache: resource")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The elements, kept from the first walk on.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeCache>);

HR_OP(AnonymousMemoryCache)
    .Output("handle: resource")
    .Output("deleter: variant")
    .Doc("Makes a place for cached elements.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMemoryCache>);

HR_OP(DummyMemoryCache)
    .Output("handle: resource")
    .Doc("A handle of no cache: the dataset makes its own.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeDummyCache>);

HR_OP(DeleteMemoryCache)
    .Input("handle: resource")
    .Input("deleter: variant")
    .Doc("Caches end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<LeaveToHandles>);

}  // namespace
}  // namespace headrace
