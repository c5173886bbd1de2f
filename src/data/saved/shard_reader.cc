// SnapshotDatasetReader: the elements of one shard of a saved dataset.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "data/dataset_op.h"
#include "data/elements.h"
#include "data/saved_run.h"
#include "op/reach.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace {
namespace {

class ShardIterator : public IteratorOf<ShardDataset> {
 public:
  using IteratorOf::IteratorOf;
  Status Next(PullContext& c, Element* out, bool* end) override {
    HR_RETURN_IF_ERROR(Record(end));
    if (*end) return OkStatus();
    const ElementSpec& spec = dataset().spec();
    out->assign(spec.types.size(), Tensor());
    for (size_t i = 0; i < spec.types.size(); ++i) {
      // A component is a record.
      if (i > 0) HR_RETURN_IF_ERROR(FurtherRecord());
      HR_ASSIGN_OR_RETURN((*out)[i], Parse(i));
    }
    ++at_;
    return OkStatus();
  }
  Status Save(PullContext& c, StateWriter& w) override {
    w.PutInt(prefix(), FileKey(), number_);
    w.PutInt(prefix(), IndexKey(), at_);
    return OkStatus();
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    HR_ASSIGN_OR_RETURN(number_, r.GetCount(prefix(), FileKey()));
    HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(prefix(), IndexKey()));
    reader_.reset();
    file_.reset();
    // Records have no fixed length, so the place is found by reading.
    for (at_ = 0; at_ < n; ++at_) {
      HR_RETURN_IF_ERROR(c.CheckCancelled());
      const int64_t number = number_;
      for (size_t i = 0; i < dataset().spec().types.size(); ++i) {
        bool end = false;
        HR_RETURN_IF_ERROR(Record(&end));
        if (end || number != number_) return DamagedState(prefix());
      }
    }
    return OkStatus();
  }

 private:
  std::string FileKey() const {
    return FullKey(prefix(), "current_checkpoint_id");
  }
  std::string IndexKey() const { return FullKey(prefix(), "start_index"); }

  // The next record, of the next file where one has ended.
  Status Record(bool* end) {
    while (true) {
      if (!reader_) HR_RETURN_IF_ERROR(Open(end));
      if (*end) return OkStatus();
      HR_ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
      if (more) return OkStatus();
      reader_.reset();
      file_.reset();
      ++number_;
      at_ = 0;
    }
  }
  Status FurtherRecord() {
    HR_ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
    if (more) return OkStatus();
    return DataLoss("a saved element of ", dataset().folder(), " is cut");
  }
  Status Open(bool* end) {
    std::string path;
    HR_ASSIGN_OR_RETURN(FileSystem * fs,
                        FileSystemFor(dataset().folder(), &path));
    HR_RETURN_IF_ERROR(FindFile(fs, path, end));
    if (*end) return OkStatus();
    path = ShardFile(path, number_);
    HR_ASSIGN_OR_RETURN(const Compression compression,
                        ParseCompression(dataset().compression()));
    HR_ASSIGN_OR_RETURN(file_, fs->OpenToRead(path));
    reader_ = std::make_unique<RecordReader>(file_.get(), compression);
    return OkStatus();
  }
  // The first file from number_ on. A shard that got its first element after a
  // walk was saved has no files of smaller numbers.
  Status FindFile(FileSystem* fs, const std::string& folder, bool* end) {
    *end = false;
    if (FileExists(fs, ShardFile(folder, number_))) return OkStatus();
    HR_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(folder));
    int64_t next = INT64_MAX, n;
    for (StringView name : names) {
      if (!absl::ConsumeSuffix(&name, ".snapshot") ||
          !absl::SimpleAtoi(name, &n) || n < number_) {
        continue;
      }
      next = std::min(next, n);
    }
    *end = next == INT64_MAX;
    if (!*end) number_ = next;
    return OkStatus();
  }
  StatusOr<Tensor> Parse(size_t i) const {
    tensorflow::TensorProto proto;
    if (!proto.ParseFromString(record_)) {
      return DataLoss("a saved element of ", dataset().folder(),
                      " is no tensor");
    }
    HR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(proto));
    const ElementSpec& spec = dataset().spec();
    if (t.dtype() != spec.types[i]) {
      return InvalidArgument("Data type mismatch at component ", i,
                             ": expected ", DTypeName(spec.types[i]),
                             " but got ", DTypeName(t.dtype()), ".");
    }
    if (!t.shape().CompatibleWith(spec.shapes[i])) {
      return InvalidArgument("Incompatible shapes at component ", i,
                             ": expected ", spec.shapes[i], " but got ",
                             t.shape(), ".");
    }
    return t;
  }

  std::unique_ptr<RandomAccessFile> file_;
  std::unique_ptr<RecordReader> reader_;
  std::string record_;
  int64_t number_ = 0, at_ = 0;  // the file's, the element's in it
};

class ShardsDataset : public ElementsDataset {
 public:
  using ElementsDataset::ElementsDataset;
  StringView kind() const override { return "SnapshotNestedDatasetReader"; }
};

Status MakeReader(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(std::string folder, TextInput(c, 0, "shard_dir"));
  HR_ASSIGN_OR_RETURN(const int64_t start, IntInput(c, 1, "start_index"));
  const std::string& compression = c.op().string_attr("compression");
  HR_RETURN_IF_ERROR(ParseCompression(compression).status());
  if (start != 0 || c.op().int_attr("version") != 2) {
    return Unimplemented("shards read from element ", start, " on, of version ",
                         c.op().int_attr("version"));
  }
  return SetDataset<ShardDataset>(c, std::move(spec), std::move(folder),
                                  compression);
}

HR_OP(SnapshotDatasetReader)
    .Traits({kReadsFiles})
    .Input("shard_dir: string")
    .Input("start_index: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("compression: string = ''")
    .Attr("version: int")
    .Doc("The elements of one shard of a saved dataset.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeReader>);

Status MakeNestedReader(KernelContext& c) {
  std::vector<Element> datasets;
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(DatasetOf(c.input(i)).status());
    datasets.push_back({c.input(i)});
  }
  return SetDataset<ShardsDataset>(c, ElementSpec{{DType::kVariant}, {Shape()}},
                                   std::move(datasets));
}

HR_OP(SnapshotNestedDatasetReader)
    .Input("inputs: N * variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("N: int >= 1")
    .Doc("A dataset whose elements are these datasets.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeNestedReader>);

}  // namespace

IteratorPtr ShardDataset::NewIterator(std::string prefix) const {
  return std::make_unique<ShardIterator>(this, std::move(prefix));
}

StatusOr<DatasetPtr> ShardsOf(const ElementSpec& spec,
                              const std::string& run_folder,
                              const std::string& compression) {
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(run_folder, &path));
  HR_ASSIGN_OR_RETURN(const std::vector<std::string> names, fs->List(path));
  std::vector<Element> shards;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".shard")) continue;
    shards.push_back({DatasetTensor(MakeNested<const ShardDataset>(
        spec, JoinPath(run_folder, name), compression))});
  }
  if (shards.empty()) {
    return NotFound("There are no shards in ", run_folder);
  }
  return DatasetPtr(MakeNested<const ShardsDataset>(
      ElementSpec{{DType::kVariant}, {Shape()}}, std::move(shards)));
}

}  // namespace headrace
