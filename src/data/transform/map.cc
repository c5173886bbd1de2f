// MapDataset: a function of every element.
#include "data/transform/map.h"

#include <deque>

#include "op/op_like.h"

namespace headrace {

std::unique_ptr<MapIterator> MappedDataset::Kept(std::string prefix) const {
  IteratorPtr made = NewIterator(std::move(prefix));
  std::unique_ptr<MapIterator> map(static_cast<MapIterator*>(made.release()));
  map->kept_ = true;
  return map;
}

StatusOr<ElementReaderPtr> MappedDataset::Reader(PullContext& c) const {
  HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
  HR_ASSIGN_OR_RETURN(FunctionRunPtr run, f_->Begin(c));
  return ReaderOf([from = std::move(from), run = std::move(run), f = f_](
                      PullContext& context, int64_t i, Element* out) {
    Element args;
    HR_RETURN_IF_ERROR(from->Read(context, i, &args));
    const Status s = (*run)(&args, out);
    return s.ok() ? s : f->Blame(s, "random access");
  });
}

// Upstream says nothing of the place where a batch is one with its map.
Status MapIterator::Failed(const Status& s) const {
  if (!kept_) return dataset().f()->Blame(s, prefix());
  if (!absl::IsOutOfRange(s)) return s;
  return InvalidArgument("Function invocation produced OutOfRangeError: ",
                         s.message());
}

Status MapIterator::Save(PullContext& c, StateWriter& w) {
  std::vector<Pulled> ahead;
  HR_RETURN_IF_ERROR(SaveAhead(c, w, &ahead));
  w.PutInt(prefix(), "invocation_results_size",
           static_cast<int64_t>(ahead.size()));
  for (size_t i = 0; i < ahead.size(); ++i) {
    const std::string at =
        absl::StrCat(prefix(), "_invocation_results[", i, "]");
    w.PutStatus(at, "_code", "_error_message", ahead[i].status);
    // A failed call has no element, and states hold none for it.
    if (!ahead[i].status.ok()) ahead[i].element.clear();
    HR_RETURN_IF_ERROR(w.PutElement(at, "size", "", ahead[i].element));
    w.PutInt(at, "end_of_input", 0);
  }
  return OkStatus();
}

Status MapIterator::Restore(PullContext& c, const StateReader& r) {
  HR_ASSIGN_OR_RETURN(const int64_t n,
                      r.GetCount(prefix(), "invocation_results_size"));
  std::vector<Pulled> ahead;
  for (int64_t i = 0; i < n; ++i) {
    const std::string at =
        absl::StrCat(prefix(), "_invocation_results[", i, "]");
    HR_ASSIGN_OR_RETURN(const bool end, r.GetBool(at, "end_of_input"));
    if (end) continue;
    Pulled p;
    HR_RETURN_IF_ERROR(r.GetStatus(at, "_code", "_error_message", &p.status));
    HR_ASSIGN_OR_RETURN(p.element, r.GetElement(at, "size", ""));
    if (p.status.ok()) {
      HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), p.element));
    }
    ahead.push_back(std::move(p));
  }
  return RestoreAhead(c, r, std::move(ahead));
}

namespace {

class MapDataset : public MappedDataset {
 public:
  // `parallel`: goes by a parallel map's name.
  MapDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f,
             bool parallel)
      : MappedDataset(std::move(spec), std::move(input), std::move(f)),
        parallel_(parallel) {}
  StringView kind() const override {
    return parallel_ ? "ParallelMapV2" : "Map";
  }
  DatasetPtr StandIn(const PullContext& c) const override {
    if (DatasetPtr other = MappedDataset::StandIn(c)) return other;
    // Upstream makes no map parallel whose function has a state: the order of
    // its calls counts.
    if (parallel_ || c.inner || !c.options.parallel_maps ||
        f()->is_stateful()) {
      return nullptr;
    }
    return MakeNested<const MapDataset>(spec(), inputs()[0], f(), true);
  }

  class Iterator : public MapIterator {
   public:
    Iterator(const MapDataset* d, std::string prefix)
        : MapIterator(d, std::move(prefix)), parallel_(d->parallel_) {}
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f()->Begin(c));
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!ahead_.empty()) [[unlikely]] {
        Pulled p = std::move(ahead_.front());
        ahead_.pop_front();
        *out = std::move(p.element);
        return p.status;
      }
      HR_RETURN_IF_ERROR(NextInput(c, &args_, end));
      if (*end) return OkStatus();
      Status s = (*run_)(&args_, out);
      if (s.ok()) [[likely]]
        return s;
      return Failed(s);
    }
    Status SaveAhead(PullContext& c, StateWriter& w,
                     std::vector<Pulled>* ahead) override {
      ahead->assign(ahead_.begin(), ahead_.end());
      return KeptInputIterator::Save(c, w);
    }
    Status RestoreAhead(PullContext& c, const StateReader& r,
                        std::vector<Pulled> ahead) override {
      ahead_.assign(std::make_move_iterator(ahead.begin()),
                    std::make_move_iterator(ahead.end()));
      return KeptInputIterator::Restore(c, r);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      return parallel_ ? MapIterator::Save(c, w)
                       : KeptInputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      return parallel_ ? MapIterator::Restore(c, r)
                       : KeptInputIterator::Restore(c, r);
    }

   private:
    const bool parallel_;
    FunctionRunPtr run_;
    Element args_;
    std::deque<Pulled> ahead_;  // of a state that was restored
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const bool parallel_;
};

Status MakeMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  return SetDataset<MapDataset>(c, std::move(spec), std::move(input),
                                std::move(f), false);
}

HR_OP(MapDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("use_inter_op_parallelism: bool = true")
    .Attr("preserve_cardinality: bool = false")
    .Attr("force_synchronous: bool = false")
    .Attr("metadata: string = ''")
    .Doc("A function of every element.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeMap>);

[[maybe_unused]] const bool kExperimentalMap =
    RegisterLike("ExperimentalMapDataset", "MapDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
