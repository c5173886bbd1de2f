// MultiDeviceIterator and the ops on it: one walk whose elements go to several
// devices in turn.
#include <algorithm>
#include <deque>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "data/anonymous_resource.h"
#include "data/dataset_op.h"
#include "data/iterate/handle_text.h"
#include "data/iterate/iterator_resource.h"
#include "op/waiting.h"

namespace headrace {
namespace {

// Element k of a walk is shard k % n's. A shard that is ahead of another reads
// on, up to as many elements as may be kept for the other; then it waits for
// it. Thread-safe.
class MultiDeviceResource : public Resource {
 public:
  MultiDeviceResource(ElementSpec spec, size_t shards)
      : spec_(std::move(spec)), shards_(shards) {}
  std::string DebugString() const override { return "MultiDeviceIterator"; }
  const ElementSpec& spec() const { return spec_; }

  // Begins a walk, and ends the one before; its number.
  StatusOr<int64_t> Begin(DatasetPtr dataset, int64_t most_kept,
                          const RunServices& services) {
    HR_RETURN_IF_ERROR(CheckSpec(spec_, dataset->spec()));
    HR_ASSIGN_OR_RETURN(auto walk,
                        Iteration::Begin(std::move(dataset), services));
    auto fresh = std::make_shared<Walk>();
    fresh->along = std::move(walk);
    fresh->kept.resize(shards_);
    // Also without room of their own, shards hand one element on.
    fresh->most_kept = std::max<int64_t>(most_kept, 1);
    MutexLock lock(mutex_);
    if (walk_) walk_->over = true;
    walk_.swap(fresh);
    changed_.NotifyAll();
    return ++number_;
  }

  Status Next(int64_t shard, int64_t number, Element* out, bool* end) {
    MutexLock lock(mutex_);
    if (!walk_) {
      return FailedPrecondition(
          "GetNextFromShard() failed because the iterator has not been "
          "initialized. Ensure that you have run the initializer operation "
          "for this iterator before getting the next element.");
    }
    if (shard < 0 || shard >= static_cast<int64_t>(shards_)) {
      return InvalidArgument("shard_num must be in [0, ", shards_, "), got ",
                             shard);
    }
    const std::shared_ptr<Walk> walk = walk_;
    while (true) {
      if (number != number_ || walk->over) {
        return InvalidArgument("Invalid incarnation id: ", number,
                               ", expected ", number_);
      }
      if (Take(*walk, shard, out, end)) {
        changed_.NotifyAll();
        return walk->kept_status(*end);
      }
      const std::deque<Element>& next = walk->kept[walk->next];
      if (!walk->reading &&
          static_cast<int64_t>(next.size()) < walk->most_kept) {
        ReadOne(*walk);
        continue;
      }
      changed_.WaitFor(mutex_, std::chrono::milliseconds(20));
      MutexUnlock open(mutex_);
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }

 private:
  struct Walk {
    std::shared_ptr<Iteration> along;
    std::vector<std::deque<Element>> kept;  // one a shard
    size_t next = 0;                        // whose the next element is
    int64_t most_kept = 1;
    bool reading = false;  // somebody is, outside of the lock
    bool ended = false, over = false;
    Status status;  // of the read at which it ended

    Status kept_status(bool end) const { return end ? status : OkStatus(); }
  };

  // False where the shard's next element has not been read yet.
  static bool Take(Walk& walk, int64_t shard, Element* out, bool* end) {
    std::deque<Element>& mine = walk.kept[shard];
    if (mine.empty()) return *end = walk.ended;
    *out = std::move(mine.front());
    mine.pop_front();
    return true;
  }

  void ReadOne(Walk& walk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Also where the read ends by an exception.
    struct Reading {
      explicit Reading(bool* flag) : flag_(flag) { *flag_ = true; }
      ~Reading() { *flag_ = false; }
      bool* flag_;
    } reading(&walk.reading);
    Element element;
    bool end = false;
    Status s;
    {
      MutexUnlock open(mutex_);
      s = walk.along->Next(&element, &end);
    }
    changed_.NotifyAll();
    if (end || !s.ok()) {
      // An error is every shard's, as none of them can go on behind it.
      walk.ended = true;
      walk.status = std::move(s);
      return;
    }
    walk.kept[walk.next].push_back(std::move(element));
    walk.next = (walk.next + 1) % walk.kept.size();
  }

  const ElementSpec spec_;
  const size_t shards_;
  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Walk> walk_ ABSL_GUARDED_BY(mutex_);
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
};

StatusOr<std::shared_ptr<MultiDeviceResource>> MultiDeviceInput(
    const KernelContext& c, int i) {
  return ResourceAs<MultiDeviceResource>(c.input(i), c.services().resources);
}

StatusOr<std::shared_ptr<MultiDeviceResource>> NewMultiDevice(
    const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(op));
  const size_t shards = op.attr<std::vector<std::string>>("devices").size();
  return std::make_shared<MultiDeviceResource>(std::move(spec), shards);
}

Status MakeAnonymousMultiDevice(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto made, NewMultiDevice(c.op()));
  SetAnonymous(c, std::move(made));
  return OkStatus();
}

Status MakeNamedMultiDevice(KernelContext& c) {
  static std::atomic<int64_t> unnamed{0};
  ResourceHandle handle;
  handle.name = c.op().string_attr("shared_name");
  handle.container = c.op().string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  if (handle.name.empty()) {
    handle.name = absl::StrCat("_multi_device_iterator", unnamed++);
  }
  HR_ASSIGN_OR_RETURN(
      handle.resource,
      c.services().resources->LookUpOrCreate<MultiDeviceResource>(
          handle.container, handle.name,
          [&] { return NewMultiDevice(c.op()); }));
  handle.kind = &typeid(MultiDeviceResource);
  c.set_output(0, Tensor::Scalar(std::move(handle)));
  return OkStatus();
}

Status BeginMultiDevice(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(auto iterator, MultiDeviceInput(c, 1));
  HR_ASSIGN_OR_RETURN(const int64_t most, IntInput(c, 2, "max_buffer_size"));
  HR_ASSIGN_OR_RETURN(const int64_t number,
                      iterator->Begin(std::move(dataset), most, c.services()));
  c.set_output(0, Tensor::Scalar<int64_t>(number));
  return OkStatus();
}

Status NextOfShard(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto iterator, MultiDeviceInput(c, 0));
  HR_ASSIGN_OR_RETURN(const int64_t shard, IntInput(c, 1, "shard_num"));
  HR_ASSIGN_OR_RETURN(const int64_t number, IntInput(c, 2, "incarnation_id"));
  Element element;
  bool end = false;
  HR_RETURN_IF_ERROR(iterator->Next(shard, number, &element, &end));
  if (end) return OutOfRange("End of sequence");
  return SetElement(c, std::move(element));
}

Status MultiDeviceToText(KernelContext& c) {
  HR_RETURN_IF_ERROR(MultiDeviceInput(c, 0).status());
  c.set_output(
      0, Tensor::Scalar(TextOfHandle(c.input(0).scalar<ResourceHandle>())));
  return OkStatus();
}

Status TextToMultiDevice(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string text, TextInput(c, 0, "string_handle"));
  HR_ASSIGN_OR_RETURN(ResourceHandle handle, HandleOfText(text));
  Tensor t = Tensor::Scalar(std::move(handle));
  HR_ASSIGN_OR_RETURN(auto iterator, ResourceAs<MultiDeviceResource>(
                                         t, c.services().resources));
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  if (!spec.types.empty()) {
    HR_RETURN_IF_ERROR(CheckSpec(spec, iterator->spec()));
  }
  c.set_output(0, std::move(t));
  return OkStatus();
}

HR_OP(AnonymousMultiDeviceIterator)
    .Output("handle: resource")
    .Output("deleter: variant")
    .Attr("devices: list(string) >= 1")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator of several devices that lives as long as its handle.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAnonymousMultiDevice>);

HR_OP(AnonymousMultiDeviceIteratorV3)
    .Output("handle: resource")
    .Attr("devices: list(string) >= 1")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator of several devices that lives as long as its handle.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeAnonymousMultiDevice>);

HR_OP(MultiDeviceIterator)
    .Output("handle: resource")
    .Attr("devices: list(string) >= 1")
    .Attr("shared_name: string")
    .Attr("container: string")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("An iterator of several devices, by its name.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeNamedMultiDevice>);

HR_OP(MultiDeviceIteratorInit)
    .Input("dataset: variant")
    .Input("multi_device_iterator: resource")
    .Input("max_buffer_size: int64")
    .Output("incarnation_id: int64")
    .Doc("Sets an iterator to the beginning of a dataset; the walk's number.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<BeginMultiDevice>);

HR_OP(MultiDeviceIteratorGetNextFromShard)
    .Traits({kMayWait})
    .Input("multi_device_iterator: resource")
    .Input("shard_num: int32")
    .Input("incarnation_id: int64")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("A shard's next element; OutOfRange at the end.")
    .Stateful()
    .Shape(ElementRule)
    .Cpu(ComputeOwn<NextOfShard>);

HR_OP(MultiDeviceIteratorToStringHandle)
    .Input("multi_device_iterator: resource")
    .Output("string_handle: string")
    .Doc("A text that names the iterator in this process.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MultiDeviceToText>);

HR_OP(MultiDeviceIteratorFromStringHandle)
    .Input("string_handle: string")
    .Output("multi_device_iterator: resource")
    .Attr("output_types: list(type) >= 0 = []")
    .Attr("output_shapes: list(shape) >= 0 = []")
    .Doc("The iterator that a text names.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<TextToMultiDevice>);

HR_OP(DeleteMultiDeviceIterator)
    .Input("multi_device_iterator: resource")
    .Input("iterators: N * resource")
    .Input("deleter: variant")
    .Attr("N: int >= 0")
    .Doc("Iterators end with their handles.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<LeaveToHandles>);

}  // namespace
}  // namespace headrace
