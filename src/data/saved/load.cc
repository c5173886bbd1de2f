// LoadDataset: the elements that a folder holds. SnapshotDatasetV2: elements
// that the first walk writes to a folder and later ones read from it.
#include "data/saved/load.h"

#include "absl/status/status.h"
#include "base/files/files.h"
#include "data/dataset_op.h"
#include "data/saved/save.h"
#include "op/reach.h"

namespace headrace {
namespace {

class LoadDataset : public Dataset {
 public:
  LoadDataset(ElementSpec spec, SavedSource source, int64_t count)
      : Dataset(std::move(spec)), source_(std::move(source)), count_(count) {}
  StringView kind() const override { return "Load"; }
  int64_t Count() const override { return count_; }

  class Iterator : public MadeIteratorOf<LoadDataset> {
   public:
    using MadeIteratorOf::MadeIteratorOf;

   private:
    StatusOr<IteratorPtr> Make(PullContext&, PullContext& inner) override {
      return IterateSaved(inner, dataset().source_, dataset().spec(), prefix());
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const SavedSource source_;
  const int64_t count_;
};

class SnapshotDataset : public InputDataset {
 public:
  SnapshotDataset(ElementSpec spec, DatasetPtr input, SavedSource source,
                  SaveTarget target, FileSystem* fs)
      : InputDataset(std::move(spec), std::move(input)),
        source_(std::move(source)),
        target_(std::move(target)),
        fs_(fs) {}
  StringView kind() const override { return "Snapshot"; }

  class Iterator : public IteratorOf<SnapshotDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(Open(c));
      return input_->Next(Context(c), out, end);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(Open(c));
      // The restored walk must go on the same way, whatever the folder holds by
      // then.
      w.PutInt(prefix(), FullKey(prefix(), "iterator_mode"), reading_);
      return input_->Save(Context(c), w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(
          const bool reading,
          r.GetBool(prefix(), FullKey(prefix(), "iterator_mode")));
      input_.reset();
      HR_RETURN_IF_ERROR(reading ? OpenReader(c) : OpenWriter(c));
      return input_->Restore(Context(c), r);
    }

   private:
    // The shards lie behind a function of this dataset.
    PullContext& Context(PullContext& c) { return reading_ ? inner_ : c; }
    Status Open(PullContext& c) {
      if (input_) return OkStatus();
      // Looked at when the first element is asked for: another walk may have
      // finished the files since the dataset was made.
      const StatusOr<SavedRun> run =
          ReadRun(dataset().fs_, dataset().target_.folder);
      if (run.ok() && run->finalized) return OpenReader(c);
      // A run that was not finished is written anew under an id of its own.
      if (run.ok() || absl::IsNotFound(run.status())) return OpenWriter(c);
      return run.status();
    }
    Status OpenReader(PullContext& c) {
      reading_ = true;
      inner_ = c.Inner();
      HR_ASSIGN_OR_RETURN(const SavedRun run,
                          ReadRun(dataset().fs_, dataset().target_.folder));
      SavedSource source = dataset().source_;
      source.run_id = run.run_id;
      HR_ASSIGN_OR_RETURN(
          input_, IterateSaved(inner_, source, dataset().spec(), prefix()));
      return OkStatus();
    }
    Status OpenWriter(PullContext& c) {
      reading_ = false;
      HR_ASSIGN_OR_RETURN(DatasetPtr writer,
                          MakeSaving("SnapshotWriter", dataset().spec(),
                                     dataset().inputs()[0], dataset().target_));
      HR_ASSIGN_OR_RETURN(input_, writer->Iterate(c, prefix()));
      return OkStatus();
    }

    PullContext inner_;
    IteratorPtr input_;
    bool reading_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const SavedSource source_;
  const SaveTarget target_;
  FileSystem* const fs_;
};

Status MakeLoad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  SavedSource source;
  HR_ASSIGN_OR_RETURN(source.folder, TextInput(c, 0, "path"));
  source.compression = c.op().string_attr("compression");
  // Refused where the dataset is made, not at its first element.
  HR_RETURN_IF_ERROR(ParseCompression(source.compression).status());
  HR_ASSIGN_OR_RETURN(
      source.reader_func,
      CapturedFunction::Make(c, "reader_func", "reader_func_other_args"));
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(source.folder, &path));
  StatusOr<SavedRun> run = ReadRun(fs, path);
  if (absl::IsNotFound(run.status())) {
    return NotFound("Could not find a saved dataset in ", source.folder, ": ",
                    run.status().message());
  }
  HR_RETURN_IF_ERROR(run.status());
  source.run_id = run->run_id;
  return SetDataset<LoadDataset>(c, std::move(spec), std::move(source),
                                 run->num_elements);
}

// FNV-1a with 64 bits: names of folders must stay the same in every release.
uint64_t HashStructure(const Dataset& dataset, uint64_t h) {
  constexpr uint64_t kPrime = 1099511628211u;
  const auto mix = [&](StringView bytes) {
    for (const char b : bytes) h = (h ^ static_cast<uint8_t>(b)) * kPrime;
  };
  mix(dataset.kind());
  mix(absl::StrCat(dataset.Cardinality(), "/", dataset.width()));
  for (int i = 0; i < dataset.width(); ++i) {
    mix(absl::StrCat(DTypeName(dataset.spec().types[i]),
                     dataset.spec().shapes[i].ToString()));
  }
  for (const DatasetPtr& d : dataset.inputs()) h = HashStructure(*d, h);
  return h;
}

Status MakeSnapshot(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const std::string path, TextInput(c, 1, "path"));
  // Upstream hands its own graphs' hash over; without one the structure is
  // hashed.
  const uint64_t hash = c.op().bool_attr("hash_valid")
                            ? static_cast<uint64_t>(c.op().int_attr("hash"))
                            : StructureHash(*input);
  SavedSource source;
  SaveTarget target;
  target.graph_hash = absl::StrCat(hash);
  source.folder = JoinPath(path, target.graph_hash);
  source.compression = target.compression = c.op().string_attr("compression");
  HR_RETURN_IF_ERROR(ParseCompression(source.compression).status());
  HR_ASSIGN_OR_RETURN(
      source.reader_func,
      CapturedFunction::Make(c, "reader_func", "reader_func_other_args"));
  HR_ASSIGN_OR_RETURN(
      target.shard_func,
      CapturedFunction::Make(c, "shard_func", "shard_func_other_args"));
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(source.folder, &target.folder));
  return SetDataset<SnapshotDataset>(c, std::move(spec), std::move(input),
                                     std::move(source), std::move(target), fs);
}

HR_OP(LoadDataset)
    .Traits({kReadsFiles})
    .Input("path: string")
    .Input("reader_func_other_args: Treader_func_args")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("compression: string = ''")
    .Attr("reader_func: func")
    .Attr("Treader_func_args: list(type) >= 0")
    .Doc("The elements that a folder holds.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeLoad>);

HR_OP(SnapshotDatasetV2)
    .Traits({kReadsFiles, kWritesFiles})
    .Input("input_dataset: variant")
    .Input("path: string")
    .Input("reader_func_other_args: Treader_func_args")
    .Input("shard_func_other_args: Tshard_func_args")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("compression: string = ''")
    .Attr("reader_prefix: string = ''")
    .Attr("writer_prefix: string = ''")
    .Attr("hash_valid: bool = false")
    .Attr("hash: int = 0")
    .Attr("reader_func: func")
    .Attr("shard_func: func")
    .Attr("Treader_func_args: list(type) >= 0")
    .Attr("Tshard_func_args: list(type) >= 0")
    .Attr("metadata: string = ''")
    .Doc("The elements, written by the first walk and read by later ones.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSnapshot>);

}  // namespace

StatusOr<IteratorPtr> IterateSaved(PullContext& c, const SavedSource& source,
                                   const ElementSpec& spec, StringView parent) {
  HR_ASSIGN_OR_RETURN(DatasetPtr shards,
                      ShardsOf(spec, JoinPath(source.folder, source.run_id),
                               source.compression));
  HR_ASSIGN_OR_RETURN(FunctionRunPtr run, source.reader_func->Begin(c));
  Element args = {DatasetTensor(std::move(shards))}, results;
  HR_RETURN_IF_ERROR((*run)(&args, &results));
  HR_ASSIGN_OR_RETURN(DatasetPtr made, DatasetResult(results));
  // reader_func is the caller's and may return anything.
  if (made->spec().types != spec.types) {
    return InvalidArgument(
        "`reader_func` must return a dataset of the saved elements; its "
        "components have other types");
  }
  return made->Iterate(c, parent);
}

uint64_t StructureHash(const Dataset& dataset) {
  constexpr uint64_t kBasis = 14695981039346656037u;
  return HashStructure(dataset, kBasis);
}

}  // namespace headrace
