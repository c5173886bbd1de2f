// PrefetchDataset: a thread that is ahead of who reads.
#include "data/transform/prefetch.h"

#include "data/dataset_op.h"
#include "data/transform/read_ahead.h"

namespace headrace {
namespace {

class PrefetchDataset : public InputDataset {
 public:
  PrefetchDataset(ElementSpec spec, DatasetPtr input, int64_t size)
      : InputDataset(std::move(spec), std::move(input)), size_(size) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    return input().Reader(c);
  }
  StringView kind() const override { return "Prefetch"; }

  class Iterator : public IteratorOf<PrefetchDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(IteratorPtr input,
                          dataset().input().Iterate(c, prefix()));
      reader_ = std::make_unique<ReadAhead>(std::move(input), dataset().size_);
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      return reader_->Next(c, out, end);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      std::vector<Pulled> ahead;
      HR_RETURN_IF_ERROR(reader_->Save(c, w, &ahead));
      w.PutInt(prefix(), "buffer_size", static_cast<int64_t>(ahead.size()));
      for (size_t i = 0; i < ahead.size(); ++i) {
        const std::string at = absl::StrCat(prefix(), "::", i);
        w.PutStatus(at, "status.code", "status.error_message", ahead[i].status);
        if (!ahead[i].status.ok()) continue;
        HR_RETURN_IF_ERROR(
            w.PutElement(at, "buffer.size", "buffer", ahead[i].element));
      }
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(prefix(), "buffer_size"));
      std::vector<Pulled> ahead;
      for (int64_t i = 0; i < n; ++i) {
        const std::string at = absl::StrCat(prefix(), "::", i);
        Pulled p;
        HR_RETURN_IF_ERROR(
            r.GetStatus(at, "status.code", "status.error_message", &p.status));
        if (p.status.ok()) {
          HR_ASSIGN_OR_RETURN(p.element,
                              r.GetElement(at, "buffer.size", "buffer"));
          HR_RETURN_IF_ERROR(CheckSaved(at, dataset().spec(), p.element));
        }
        ahead.push_back(std::move(p));
      }
      return reader_->Restore(c, r, std::move(ahead));
    }

   private:
    std::unique_ptr<ReadAhead> reader_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;  // negative: as it turns out well
};

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
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("slack_period: int = 0")
    .Attr("legacy_autotune: bool = true")
    .Attr("buffer_size_min: int = 0")
    .Attr("metadata: string = ''")
    .Doc("The input, made ahead of time by a thread.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePrefetch>);

}  // namespace

DatasetPtr Prefetched(DatasetPtr input, int64_t size) {
  ElementSpec spec = input->spec();
  return MakeNested<const PrefetchDataset>(std::move(spec), std::move(input),
                                           size);
}

}  // namespace headrace
