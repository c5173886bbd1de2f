// RecordInput: batches of records of many files, in random order, without end.
#include <algorithm>

#include "base/cancellation.h"
#include "base/files/files.h"
#include "base/mutex.h"
#include "formats/records.h"
#include "op/reach.h"
#include "ops/random/generator.h"

namespace headrace {
namespace {

// Records come out of a buffer, each place of which is as likely as another,
// and which is filled from one file after the other. At its end the list of
// files is shuffled anew. Batches go on over that.
class RecordInput : public Kernel {
 public:
  RecordInput(const ResolvedOp& op, Compression compression)
      : pattern_(op.string_attr("file_pattern")),
        batch_(op.int_attr("batch_size")),
        most_kept_(op.int_attr("file_buffer_size")),
        shift_(op.float_attr("file_shuffle_shift_ratio")),
        compression_(compression),
        random_(static_cast<uint64_t>(op.int_attr("file_random_seed")), 0) {}

  Status Run(KernelContext& c) override {
    MutexLock lock(mutex_);
    if (files_.empty()) HR_RETURN_IF_ERROR(FindFiles());
    for (int64_t i = 0; i < batch_; ++i) {
      HR_RETURN_IF_ERROR(Fill());
      std::swap(kept_[Drawn(kept_.size())], kept_.back());
      c.out<std::string>(0)[i] = std::move(kept_.back());
      kept_.pop_back();
    }
    return OkStatus();
  }

 private:
  size_t Drawn(size_t n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return random_.Next()[0] % n;
  }

  Status FindFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    HR_ASSIGN_OR_RETURN(fs_, FileSystemFor(pattern_, &path_));
    HR_ASSIGN_OR_RETURN(files_, MatchPaths(fs_, path_));
    if (files_.empty()) return NotFound("Found no files at ", pattern_);
    next_ = files_.size();
    return OkStatus();
  }

  // Reads on until the buffer is full, or as full as the files make it.
  Status Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool begun_anew = false;
    while (static_cast<int64_t>(kept_.size()) < most_kept_) {
      HR_RETURN_IF_ERROR(CheckStopOften());
      if (!reader_) {
        if (next_ == files_.size()) {
          // What is left of the last round goes out before the next begins.
          if (!kept_.empty()) return OkStatus();
          if (begun_anew) {
            return OutOfRange("the files at ", pattern_, " have no records");
          }
          begun_anew = true;
          BeginRound();
        }
        HR_ASSIGN_OR_RETURN(file_, fs_->OpenToRead(files_[next_++]));
        reader_ = std::make_unique<RecordReader>(file_.get(), compression_);
      }
      std::string record;
      StatusOr<bool> more = reader_->Next(&record);
      if (more.ok() && *more) {
        kept_.push_back(std::move(record));
        continue;
      }
      // Of a damaged file the next call leaves the rest out.
      reader_.reset();
      file_.reset();
      HR_RETURN_IF_ERROR(more.status());
    }
    return OkStatus();
  }

  void BeginRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (size_t i = files_.size(); i > 1; --i) {
      std::swap(files_[i - 1], files_[Drawn(i)]);
    }
    const double places = shift_ * static_cast<double>(files_.size());
    std::rotate(files_.begin(), files_.begin() + static_cast<int64_t>(places),
                files_.end());
    next_ = 0;
  }

  const std::string pattern_;
  const int64_t batch_, most_kept_;
  const double shift_;
  const Compression compression_;
  Mutex mutex_;
  Philox random_ ABSL_GUARDED_BY(mutex_);
  FileSystem* fs_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> files_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // of files_
  std::unique_ptr<RandomAccessFile> file_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RecordReader> reader_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> kept_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<std::unique_ptr<Kernel>> BindRecordInput(const ResolvedOp& op) {
  HR_ASSIGN_OR_RETURN(const Compression compression,
                      ParseCompression(op.string_attr("compression_type")));
  for (const char* name : {"file_buffer_size", "file_parallelism"}) {
    // Files are read one after the other, which any number allows.
    if (op.int_attr(name) < 1) {
      return InvalidArgument(name, " must be positive, got ",
                             op.int_attr(name));
    }
  }
  const double shift = op.float_attr("file_shuffle_shift_ratio");
  if (!(shift >= 0 && shift < 1)) {
    return InvalidArgument("file_shuffle_shift_ratio must be in [0, 1), got ",
                           shift);
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<RecordInput>(op, compression));
}

Status RecordInputShape(ShapeContext& c) {
  const int64_t batch = c.op().int_attr("batch_size");
  if (batch < 0) {
    return InvalidArgument("batch_size must be >= 0, got ", batch);
  }
  c.set_output(0, Shape{batch});
  return OkStatus();
}

HR_OP(RecordInput)
    .Traits({kReadsFiles})
    .Output("records: string")
    .Attr("file_pattern: string")
    .Attr("file_random_seed: int = 301")
    .Attr("file_shuffle_shift_ratio: float = 0")
    .Attr("file_buffer_size: int = 10000")
    .Attr("file_parallelism: int = 16")
    .Attr("batch_size: int = 32")
    .Attr("compression_type: string = ''")
    .Doc("Records of files, in random order, without end.")
    .Stateful()
    .Shape(RecordInputShape)
    .Cpu(BindRecordInput);

}  // namespace
}  // namespace headrace
