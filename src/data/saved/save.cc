// SaveDataset, SaveDatasetV2: elements written to a folder, at once or as they
// pass.
#include "data/saved/save.h"

#include "base/files/files.h"
#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"
#include "op/reach.h"

namespace headrace {
namespace {

class SavingDataset : public InputDataset {
 public:
  SavingDataset(StringView kind, ElementSpec spec, DatasetPtr input,
                SaveTarget target, FileSystem* fs, Compression compression)
      : InputDataset(std::move(spec), std::move(input)),
        kind_(kind),
        target_(std::move(target)),
        fs_(fs),
        compression_(compression) {}
  StringView kind() const override { return kind_; }

  class Iterator : public InputIterator<SavingDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      const CapturedFunctionPtr& f = dataset().target_.shard_func;
      if (f) {
        HR_ASSIGN_OR_RETURN(shard_, f->Begin(c));
      }
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      *end = finished_;
      if (finished_) return OkStatus();
      // Each walk writes to a folder of its own, so that walks beside one
      // another do not mix.
      HR_RETURN_IF_ERROR(Open(NewRunId(), 0));
      HR_RETURN_IF_ERROR(NextInput(c, out, end));
      if (*end) return Finish();
      HR_ASSIGN_OR_RETURN(const int64_t shard, ShardOf(*out));
      ++count_;
      // Elements are written as they pass on to whoever reads.
      return writers_->Write(shard, *out);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(Open(NewRunId(), 0));
      // Files are closed at a checkpoint: a restored walk goes on in new ones,
      // and what this walk writes afterwards does not count.
      if (!finished_) HR_RETURN_IF_ERROR(writers_->Checkpoint());
      w.PutInt(prefix(), "finished", finished_);
      HR_RETURN_IF_ERROR(
          w.Put(prefix(), "run_id", Tensor::Scalar<std::string>(run_id_)));
      w.PutInt(prefix(), "current_checkpoint_id", writers_->file());
      w.PutInt(prefix(), "num_elements", count_);
      return InputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(finished_, r.GetBool(prefix(), "finished"));
      HR_ASSIGN_OR_RETURN(const Tensor id, r.Get(prefix(), "run_id"));
      HR_ASSIGN_OR_RETURN(const int64_t file,
                          r.GetCount(prefix(), "current_checkpoint_id"));
      HR_ASSIGN_OR_RETURN(count_, r.GetCount(prefix(), "num_elements"));
      // The id becomes the name of a folder, so a forged one must not lead
      // elsewhere.
      if (id.dtype() != DType::kString || id.num_elements() != 1 ||
          !IsNumber(id.data<std::string>()[0])) {
        return DamagedState(prefix());
      }
      writers_.reset();
      HR_RETURN_IF_ERROR(Open(id.data<std::string>()[0], file));
      return InputIterator::Restore(c, r);
    }

   private:
    static bool IsNumber(const std::string& s) {
      return !s.empty() &&
             s.find_first_not_of("0123456789") == std::string::npos;
    }
    Status Open(const std::string& run_id, int64_t file) {
      if (writers_) return OkStatus();
      run_id_ = run_id;
      const SavingDataset& d = dataset();
      HR_ASSIGN_OR_RETURN(
          writers_, ShardWriters::Create(d.fs_, JoinPath(d.path(), run_id),
                                         d.compression_, file));
      return OkStatus();
    }
    // Last the metadata: with them the folder is complete.
    Status Finish() {
      // First, so that an error of the disk does not make the next call write
      // again.
      finished_ = true;
      HR_RETURN_IF_ERROR(writers_->Checkpoint());
      return WriteRun(dataset().fs_, dataset().path(),
                      {dataset().target_.graph_hash, run_id_,
                       dataset().spec().types, count_, /*finalized=*/true});
    }
    StatusOr<int64_t> ShardOf(const Element& element) {
      if (!shard_) return 0;
      Element args = element, results;
      HR_RETURN_IF_ERROR((*shard_)(&args, &results));
      if (results.size() != 1 || results[0].dtype() != DType::kInt64 ||
          results[0].num_elements() != 1) {
        return InvalidArgument("`shard_func` must return a scalar int64.");
      }
      return results[0].data<int64_t>()[0];
    }

    FunctionRunPtr shard_;
    std::unique_ptr<ShardWriters> writers_;
    std::string run_id_;
    int64_t count_ = 0;
    bool finished_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::string& path() const { return target_.folder; }

  const std::string kind_;
  const SaveTarget target_;
  FileSystem* const fs_;
  const Compression compression_;
};

StatusOr<DatasetPtr> Saving(const KernelContext& c, ElementSpec spec) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  SaveTarget target;
  HR_ASSIGN_OR_RETURN(target.folder, TextInput(c, 1, "path"));
  target.compression = c.op().string_attr("compression");
  if (c.op().bool_attr("use_shard_func")) {
    HR_ASSIGN_OR_RETURN(
        target.shard_func,
        CapturedFunction::Make(c, "shard_func", "shard_func_other_args"));
  }
  return MakeSaving("Save", std::move(spec), std::move(input),
                    std::move(target));
}

Status SaveAll(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(DatasetPtr saving, Saving(c, input->spec()));
  HR_ASSIGN_OR_RETURN(auto walk, Iteration::Begin(saving, c.services()));
  Element element;
  for (bool end = false; !end;) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    HR_RETURN_IF_ERROR(walk->Next(&element, &end));
  }
  return OkStatus();
}

Status MakeSave(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr saving, Saving(c, std::move(spec)));
  NoteCall(c, *saving);
  return SetDataset(c, std::move(saving));
}

HR_OP(SaveDataset)
    .Traits({kWritesFiles})
    .Input("input_dataset: variant")
    .Input("path: string")
    .Input("shard_func_other_args: Tshard_func_args")
    .Attr("compression: string = ''")
    .Attr("shard_func: func")
    .Attr("use_shard_func: bool = true")
    .Attr("Tshard_func_args: list(type) >= 0")
    .Doc("Writes all elements to a folder.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(ComputeOwn<SaveAll>);

HR_OP(SaveDatasetV2)
    .Traits({kWritesFiles})
    .Input("input_dataset: variant")
    .Input("path: string")
    .Input("shard_func_other_args: Tshard_func_args")
    .Output("handle: variant")
    .Attr("compression: string = ''")
    .Attr("shard_func: func")
    .Attr("use_shard_func: bool = true")
    .Attr("Tshard_func_args: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The elements, written to a folder as they pass.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSave>);

}  // namespace

StatusOr<DatasetPtr> MakeSaving(StringView kind, ElementSpec spec,
                                DatasetPtr input, SaveTarget target) {
  HR_ASSIGN_OR_RETURN(const Compression compression,
                      ParseCompression(target.compression));
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(target.folder, &path));
  target.folder = std::move(path);
  return DatasetPtr(
      MakeNested<const SavingDataset>(kind, std::move(spec), std::move(input),
                                      std::move(target), fs, compression));
}

}  // namespace headrace
