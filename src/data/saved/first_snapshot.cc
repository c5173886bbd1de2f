// SnapshotDataset, the first form of snapshots: no functions say what goes
// where, so all elements are in one shard.
#include "base/files/files.h"
#include "data/dataset_op.h"
#include "data/saved/load.h"
#include "data/saved/save.h"
#include "op/reach.h"

namespace headrace {
namespace {

enum class SnapshotMode { kAuto, kRead, kWrite, kPassThrough };

class FirstSnapshot : public InputDataset {
 public:
  FirstSnapshot(ElementSpec spec, DatasetPtr input, SnapshotMode mode,
                SaveTarget target)
      : InputDataset(std::move(spec), std::move(input)),
        mode_(mode),
        target_(std::move(target)) {}
  StringView kind() const override { return "Snapshot"; }

  class Iterator : public IteratorOf<FirstSnapshot> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!input_) HR_RETURN_IF_ERROR(Open(c));
      return input_->Next(c, out, end);
    }
    Status Save(PullContext& c, StateWriter& w) override {
      if (!input_) HR_RETURN_IF_ERROR(Open(c));
      // A walk goes on as it began, whatever the folder holds by then.
      w.PutInt(prefix(), "mode", static_cast<int64_t>(mode_));
      return input_->Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t mode, r.GetCount(prefix(), "mode"));
      if (mode < 1 || mode > 3) return DamagedState(prefix());
      HR_RETURN_IF_ERROR(OpenAs(c, static_cast<SnapshotMode>(mode)));
      return input_->Restore(c, r);
    }

   private:
    StatusOr<SavedRun> Run() const {
      std::string path;
      HR_ASSIGN_OR_RETURN(FileSystem * fs,
                          FileSystemFor(dataset().target_.folder, &path));
      return ReadRun(fs, path);
    }
    Status Open(PullContext& c) {
      if (dataset().mode_ != SnapshotMode::kAuto) {
        return OpenAs(c, dataset().mode_);
      }
      const StatusOr<SavedRun> run = Run();
      if (!run.ok() && !absl::IsNotFound(run.status())) return run.status();
      return OpenAs(c, run.ok() && run->finalized ? SnapshotMode::kRead
                                                  : SnapshotMode::kWrite);
    }
    Status OpenAs(PullContext& c, SnapshotMode mode) {
      mode_ = mode;
      HR_ASSIGN_OR_RETURN(const DatasetPtr from, Source(mode));
      HR_ASSIGN_OR_RETURN(input_, from->Iterate(c, prefix()));
      return OkStatus();
    }
    StatusOr<DatasetPtr> Source(SnapshotMode mode) const {
      const FirstSnapshot& d = dataset();
      if (mode == SnapshotMode::kPassThrough) return d.inputs()[0];
      if (mode == SnapshotMode::kWrite) {
        return MakeSaving("SnapshotWriter", d.spec(), d.inputs()[0], d.target_);
      }
      const StatusOr<SavedRun> run = Run();
      if (absl::IsNotFound(run.status())) {
        return NotFound("Metadata file does not exist.");
      }
      HR_RETURN_IF_ERROR(run.status());
      if (run->types != d.spec().types) {
        return InvalidArgument("the snapshot has elements of other types");
      }
      const std::string folder = JoinPath(d.target_.folder, run->run_id);
      return DatasetPtr(MakeNested<const ShardDataset>(
          d.spec(), JoinPath(folder, "00000000.shard"), d.target_.compression));
    }

    SnapshotMode mode_ = SnapshotMode::kAuto;
    IteratorPtr input_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const SnapshotMode mode_;
  const SaveTarget target_;
};

StatusOr<SnapshotMode> ModeOf(const std::string& text) {
  if (text.empty() || text == "auto") return SnapshotMode::kAuto;
  if (text == "read") return SnapshotMode::kRead;
  if (text == "write") return SnapshotMode::kWrite;
  if (text == "passthrough") return SnapshotMode::kPassThrough;
  return InvalidArgument(
      "mode must be either 'auto', 'read', 'write', or 'passthrough'.");
}

Status CheckNumbers(const ResolvedOp& op) {
  const int64_t expiry = op.int_attr("pending_snapshot_expiry_seconds");
  if (expiry < 1) {
    return InvalidArgument(
        "pending_snapshot_expiry_seconds must be at least 1 second.");
  }
  for (const char* name : {"num_reader_threads", "reader_buffer_size",
                           "num_writer_threads", "writer_buffer_size"}) {
    if (op.int_attr(name) < 1) {
      return InvalidArgument(name, " must be at least 1.");
    }
  }
  return OkStatus();
}

Status MakeFirstSnapshot(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(op));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const std::string path, TextInput(c, 1, "path"));
  HR_ASSIGN_OR_RETURN(const SnapshotMode mode, ModeOf(op.string_attr("mode")));
  HR_RETURN_IF_ERROR(CheckNumbers(op));
  SaveTarget target;
  target.compression = op.string_attr("compression");
  if (!ParseCompression(target.compression).ok()) {
    return InvalidArgument(
        "compression must be either '', 'GZIP' or 'SNAPPY'.");
  }
  target.graph_hash =
      absl::StrCat(absl::Hex(StructureHash(*input), absl::kZeroPad16));
  // A name that is given stands for any pipeline.
  const std::string& name = op.string_attr("snapshot_name");
  if (name.find('/') != std::string::npos || name == "..") {
    return InvalidArgument("snapshot_name must be a plain name, got ", name);
  }
  target.folder = JoinPath(
      path, name.empty() ? target.graph_hash : absl::StrCat("custom-", name));
  return SetDataset<FirstSnapshot>(c, std::move(spec), std::move(input), mode,
                                   std::move(target));
}

// One thread writes one file, whatever is said of threads, buffers and sizes of
// files, and one file has no order to be shuffled.
HR_OP(SnapshotDataset)
    .Traits({kReadsFiles, kWritesFiles})
    .Input("input_dataset: variant")
    .Input("path: string")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("compression: string = ''")
    .Attr("reader_path_prefix: string = ''")
    .Attr("writer_path_prefix: string = ''")
    .Attr("shard_size_bytes: int = 10737418240")
    .Attr("pending_snapshot_expiry_seconds: int = 86400")
    .Attr("num_reader_threads: int = 1")
    .Attr("reader_buffer_size: int = 1")
    .Attr("num_writer_threads: int = 1")
    .Attr("writer_buffer_size: int = 1")
    .Attr("shuffle_on_read: bool = false")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("mode: string = 'auto'")
    .Attr("snapshot_name: string = ''")
    .Doc(
        "The elements, written to files by the first walk and read by later "
        "ones.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeFirstSnapshot>);

}  // namespace
}  // namespace headrace
