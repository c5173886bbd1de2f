#include "data/transform/file_cache.h"

#include "base/guard.h"
#include "data/dataset_op.h"
#include "data/element_codec.h"
#include "formats/records.h"

namespace headrace {
namespace {

class FileCacheDataset : public InputDataset {
 public:
  FileCacheDataset(ElementSpec spec, DatasetPtr input, FileSystem* fs,
                   std::string path)
      : InputDataset(std::move(spec), std::move(input)),
        fs_(fs),
        path_(std::move(path)) {}
  StringView kind() const override { return "FileCache"; }
  std::string Complete() const { return path_ + ".index"; }
  std::string Partial() const { return path_ + ".lockfile"; }

  class Iterator : public IteratorOf<FileCacheDataset> {
   public:
    using IteratorOf::IteratorOf;
    ~Iterator() override {
      if (!file_) return;
      // Before the file, to which the writer refers.
      writer_.reset();
      file_.reset();
      // A walk that was given up must not leave a lock behind that no walk
      // could pass.
      Guarded("ending a cache", [this] {
        return dataset().fs_->Delete(dataset().Partial());
      }).IgnoreError();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!input_ && !reader_) HR_RETURN_IF_ERROR(Open(c));
      if (reader_) {
        HR_ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
        *end = !more;
        if (!more) return OkStatus();
        ++at_;
        HR_ASSIGN_OR_RETURN(*out, DecodeElement(record_));
        return OkStatus();
      }
      *end = finished_;
      if (finished_) return OkStatus();
      HR_RETURN_IF_ERROR(input_->Next(c, out, end));
      if (*end) return Finish();
      ++at_;
      HR_RETURN_IF_ERROR(EncodeElement(*out, &record_));
      return writer_->Write(record_);
    }
    // A place while the file is being written is one of the input: the walk
    // that takes it up writes the file anew.
    Status Save(PullContext& c, StateWriter& w) override {
      if (!input_ && !reader_) HR_RETURN_IF_ERROR(Open(c));
      w.PutInt(prefix(), "Mode", reader_ || finished_ ? kReading : kWriting);
      w.PutInt(Impl(), "cur_index", at_);
      if (reader_ || finished_) return OkStatus();
      w.PutInt(Impl(), "shard_id", 0);
      return input_->Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t at, r.GetCount(Impl(), "cur_index"));
      int64_t skipped = 0;
      HR_RETURN_IF_ERROR(Skip(c, at, &skipped));
      if (skipped == at) return OkStatus();
      return InvalidArgument("the saved iterator was at element ", at,
                             " of a cache of ", skipped);
    }

   private:
    Status Open(PullContext& c) {
      const FileCacheDataset& d = dataset();
      if (d.fs_->Stat(d.Complete()).ok()) {
        HR_ASSIGN_OR_RETURN(source_, d.fs_->OpenToRead(d.Complete()));
        reader_ = std::make_unique<RecordReader>(source_.get());
        return OkStatus();
      }
      // Creating the file is the lock: of two walks one fails here.
      auto file = d.fs_->OpenToWrite(d.Partial(), WriteMode::kCreateNew);
      if (absl::IsAlreadyExists(file.status())) {
        return AlreadyExists(
            "There appears to be a concurrent caching iterator running - cache "
            "lockfile already exists ('",
            d.Partial(),
            "'). If you are sure no other running TF computations are using "
            "this cache prefix, delete the lockfile and re-initialize the "
            "iterator.");
      }
      HR_RETURN_IF_ERROR(file.status());
      file_ = *std::move(file);
      HR_ASSIGN_OR_RETURN(writer_, RecordWriter::Create(file_.get()));
      HR_ASSIGN_OR_RETURN(input_, d.input().Iterate(c, Impl()));
      return OkStatus();
    }
    Status Finish() {
      // First, so that an error of the disk does not make the next call write
      // behind the end.
      finished_ = true;
      HR_RETURN_IF_ERROR(writer_->Finish());
      HR_RETURN_IF_ERROR(file_->Close());
      writer_.reset();
      // The complete file appears in one step.
      HR_RETURN_IF_ERROR(
          dataset().fs_->Rename(dataset().Partial(), dataset().Complete()));
      // Also tells the destructor that there is no lock to be removed.
      file_.reset();
      return OkStatus();
    }

    std::string Impl() const { return absl::StrCat(prefix(), "Impl"); }

    static constexpr int64_t kReading = 0, kWriting = 1;  // modes
    std::unique_ptr<RandomAccessFile> source_;
    std::unique_ptr<RecordReader> reader_;
    std::unique_ptr<WritableFile> file_;
    std::unique_ptr<RecordWriter> writer_;
    IteratorPtr input_;
    std::string record_;
    int64_t at_ = 0;
    bool finished_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  FileSystem* const fs_;
  const std::string path_;
};

}  // namespace

StatusOr<DatasetPtr> MakeFileCache(ElementSpec spec, DatasetPtr input,
                                   const std::string& file) {
  std::string path;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(file, &path));
  return DatasetPtr(MakeNested<const FileCacheDataset>(
      std::move(spec), std::move(input), fs, std::move(path)));
}

}  // namespace headrace
