// MapStage, OrderedMapStage and their like: tuples under keys that wait for the
// next step. Their components may come, and go, one by one.
#include <algorithm>
#include <map>
#include <optional>

#include "op/waiting.h"
#include "ops/queue/await_change.h"
#include "ops/queue/staging.h"

namespace headrace {
namespace {

// What a tuple may have; its places are given as int32.
constexpr size_t kMostComponents = 1 << 16;

using Parts = std::vector<std::optional<Tensor>>;

// By key in ascending order, which any order of the unordered form may be, too.
// Thread-safe. Calls that wait end with CheckStop.
class StagingMap : public Resource {
 public:
  explicit StagingMap(StagingLimits limits) : limits_(limits) {}
  std::string DebugString() const override { return "StagingMap"; }

  // Gives `key` the components `places` of a tuple of `width`.
  Status Put(int64_t key, absl::Span<const int32_t> places, Tuple tuple,
             size_t width) {
    const int64_t bytes = BytesOf(tuple);
    HR_RETURN_IF_ERROR(limits_.CheckFits(bytes));
    MutexLock lock(mutex_);
    while (limits_.IsFull(static_cast<int64_t>(whole_.size()), bytes_, bytes)) {
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    if (whole_.contains(key)) {
      return InvalidArgument("Cannot insert in key ", key,
                             ", as it is already complete.");
    }
    Parts& parts = partial_[key];
    parts.resize(std::max(parts.size(), width));
    for (const int32_t at : places) {
      if (parts[at].has_value()) {
        return InvalidArgument("The tensor for index '", at, "' for key '", key,
                               "' was already initialized");
      }
    }
    for (size_t i = 0; i < places.size(); ++i) {
      parts[places[i]] = std::move(tuple[i]);
    }
    bytes_ += bytes;
    const auto there = [](const auto& part) { return part.has_value(); };
    if (std::all_of(parts.begin(), parts.end(), there)) {
      whole_[key] = std::move(parts);
      partial_.erase(key);
    }
    changed_.NotifyAll();
    return OkStatus();
  }

  // Components `places` of `key`, or of the first key that there is (and says
  // which); those that are taken (`take`) are gone.
  StatusOr<Tuple> Get(std::optional<int64_t> asked, int64_t* key,
                      absl::Span<const int32_t> places, bool take) {
    MutexLock lock(mutex_);
    auto it = whole_.end();
    while (true) {
      it = asked ? whole_.find(*asked) : whole_.begin();
      if (it != whole_.end()) break;
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    *key = it->first;
    HR_ASSIGN_OR_RETURN(Tuple out, PartsOf(it->second, *key, places));
    if (!take) return out;
    for (const int32_t at : places) it->second[at].reset();
    bytes_ -= BytesOf(out);
    const auto gone = [](const auto& part) { return !part.has_value(); };
    if (std::all_of(it->second.begin(), it->second.end(), gone))
      whole_.erase(it);
    changed_.NotifyAll();
    return out;
  }

  int64_t size() const {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(whole_.size());
  }
  int64_t incomplete() const {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(partial_.size());
  }
  void Clear() {
    MutexLock lock(mutex_);
    whole_.clear();
    partial_.clear();
    bytes_ = 0;
    changed_.NotifyAll();
  }

 private:
  static StatusOr<Tuple> PartsOf(const Parts& parts, int64_t key,
                                 absl::Span<const int32_t> places) {
    Tuple out;
    for (const int32_t at : places) {
      if (at >= static_cast<int64_t>(parts.size())) {
        return InvalidArgument("Index '", at, "' for key '", key,
                               "' was out of bounds '", parts.size(), "'.");
      }
      if (!parts[at].has_value()) {
        return InvalidArgument("Tensor at index '", at, "' for key '", key,
                               "' has already been removed.");
      }
      out.push_back(*parts[at]);
    }
    return out;
  }

  const StagingLimits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<int64_t, Parts> whole_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Parts> partial_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

StatusOr<std::shared_ptr<StagingMap>> MapOf(const KernelContext& c) {
  return SharedArea<StagingMap>(c);
}

StatusOr<int64_t> KeyInput(const KernelContext& c) {
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument("key must be an int64 scalar, got ",
                           c.input(0).Describe());
  }
  return c.input(0).scalar<int64_t>();
}

// Input i: distinct places of components, `count` of them, below `width`.
StatusOr<absl::Span<const int32_t>> PlacesInput(const KernelContext& c, int i,
                                                size_t count, size_t width) {
  const auto places = c.input(i).span<int32_t>();
  if (places.empty()) {
    return InvalidArgument(c.op().name(), ": no indices are given");
  }
  if (places.size() != count) {
    return InvalidArgument(c.op().name(), ": number of indices ", places.size(),
                           " is not that of tensors, ", count);
  }
  std::vector<bool> seen(width);
  for (const int32_t at : places) {
    if (at < 0 || at >= static_cast<int64_t>(width)) {
      return InvalidArgument("Index '", at, "' was out of bounds '", width,
                             "'.");
    }
    if (seen[at]) {
      return InvalidArgument(c.op().name(), ": index ", at, " is given twice");
    }
    seen[at] = true;
  }
  return places;
}

Status PutMapped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapOf(c));
  HR_ASSIGN_OR_RETURN(const int64_t key, KeyInput(c));
  const auto& dtypes = c.op().attr<std::vector<DType>>("dtypes");
  const size_t count = c.num_inputs() - 2;
  const size_t width = std::max(dtypes.size(), count);
  HR_ASSIGN_OR_RETURN(const auto places, PlacesInput(c, 1, count, width));
  Tuple tuple;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& t = c.input(static_cast<int>(i) + 2);
    const size_t at = places[i];
    if (at < dtypes.size() && t.dtype() != dtypes[at]) {
      return InvalidArgument(c.op().name(), ": component ", at, " is of ",
                             DTypeName(dtypes[at]), ", got ",
                             DTypeName(t.dtype()));
    }
    HR_ASSIGN_OR_RETURN(Tensor kept, KeptAlone(t));
    tuple.push_back(std::move(kept));
  }
  return map->Put(key, places, std::move(tuple), width);
}

template <bool kTake>
Status GiveMapped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapOf(c));
  HR_ASSIGN_OR_RETURN(int64_t key, KeyInput(c));
  // The map alone knows how many components a tuple has.
  HR_ASSIGN_OR_RETURN(const auto places,
                      PlacesInput(c, 1, c.num_outputs(), kMostComponents));
  HR_ASSIGN_OR_RETURN(Tuple tuple, map->Get(key, &key, places, kTake));
  return SetTuple(c, 0, std::move(tuple));
}

Status GiveAnyMapped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapOf(c));
  HR_ASSIGN_OR_RETURN(const auto places,
                      PlacesInput(c, 0, c.num_outputs() - 1, kMostComponents));
  int64_t key = 0;
  HR_ASSIGN_OR_RETURN(Tuple tuple, map->Get(std::nullopt, &key, places, true));
  c.set_output(0, Tensor::Scalar<int64_t>(key));
  return SetTuple(c, 1, std::move(tuple));
}

template <int64_t (StagingMap::*count)() const>
Status CountMapped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapOf(c));
  *c.out<int32_t>(0) = static_cast<int32_t>((map.get()->*count)());
  return OkStatus();
}

Status ClearMapped(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto map, MapOf(c));
  map->Clear();
  return OkStatus();
}

Status KeyFirst(ShapeContext& c) {
  c.set_output(0, Shape());
  return OkStatus();
}

// `dtypes`: the attribute, which ops that give values want not empty.
OpBuilder MapOp(const char* name, const char* doc, const char* dtypes) {
  OpBuilder b(name);
  AddStagingAttrs(b, dtypes);
  b.Doc(doc).Stateful().Shape(UnknownShape);
  return b;
}
const char kAnyTypes[] = "dtypes: list(type)";
const char kSomeTypes[] = "dtypes: list(type) >= 1";

OpBuilder PutOp(const char* name) {
  OpBuilder b(name);
  b.Input("key: int64")
      .Input("indices: int32")
      .Input("values: fake_dtypes")
      .Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr("dtypes: list(type)")
      .Attr("fake_dtypes: list(type) >= 1")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Doc("Puts components of a tuple under a key, when there is room.")
      .Traits({kMayWait, kMayBeTried})
      .Stateful()
      .Shape(NoOutputs)
      .Cpu(ComputeOwn<PutMapped>);
  return b;
}
OpBuilder GiveOp(const char* name, const char* doc, KernelFactory kernel) {
  return MapOp(name, doc, kSomeTypes)
      .Traits({kMayWait, kMayBeTried})
      .Input("key: int64")
      .Input("indices: int32")
      .Output("values: dtypes")
      .Cpu(kernel);
}
OpBuilder GiveAnyOp(const char* name) {
  return MapOp(name, "Takes the tuple of some key, when there is one.",
               kSomeTypes)
      .Traits({kMayWait, kMayBeTried})
      .Input("indices: int32")
      .Output("key: int64")
      .Output("values: dtypes")
      .Shape(KeyFirst)
      .Cpu(ComputeOwn<GiveAnyMapped>);
}
OpBuilder CountOp(const char* name, const char* doc, KernelFactory kernel) {
  return MapOp(name, doc, kAnyTypes)
      .Output("size: int32")
      .Shape(ScalarShape)
      .Cpu(kernel);
}
OpBuilder ClearOp(const char* name) {
  return MapOp(name, "Empties a staging area.", kAnyTypes)
      .Cpu(Compute<ClearMapped>);
}

const char kTake[] = "Takes components of a key's tuple, when it is whole.";
const char kPeek[] = "Components of a key's tuple, which stay there.";
const char kWhole[] = "How many tuples are whole.";
const char kPart[] = "How many tuples lack components.";
[[maybe_unused]] const OpRegistrar kMapOps[] = {
    PutOp("MapStage"),
    PutOp("OrderedMapStage"),
    GiveOp("MapUnstage", kTake, ComputeOwn<GiveMapped<true>>),
    GiveOp("OrderedMapUnstage", kTake, ComputeOwn<GiveMapped<true>>),
    GiveOp("MapPeek", kPeek, ComputeOwn<GiveMapped<false>>),
    GiveOp("OrderedMapPeek", kPeek, ComputeOwn<GiveMapped<false>>),
    GiveAnyOp("MapUnstageNoKey"),
    GiveAnyOp("OrderedMapUnstageNoKey"),
    CountOp("MapSize", kWhole, Compute<CountMapped<&StagingMap::size>>),
    CountOp("OrderedMapSize", kWhole, Compute<CountMapped<&StagingMap::size>>),
    CountOp("MapIncompleteSize", kPart,
            Compute<CountMapped<&StagingMap::incomplete>>),
    CountOp("OrderedMapIncompleteSize", kPart,
            Compute<CountMapped<&StagingMap::incomplete>>),
    ClearOp("MapClear"),
    ClearOp("OrderedMapClear"),
};

}  // namespace
}  // namespace headrace
