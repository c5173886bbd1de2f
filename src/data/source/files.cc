// TFRecordDataset, TextLineDataset, FixedLengthRecordDataset: what lies in
// files, one file behind another.
#include "data/dataset_op.h"
#include "data/source/buffered_source.h"
#include "formats/records.h"
#include "op/reach.h"

namespace headrace {
namespace {

enum class Format { kRecords, kLines, kFixed };

struct FileSizes {
  int64_t header = 0, record = 0, footer = 0;
};

class FilesDataset : public Dataset {
 public:
  FilesDataset(Format format, std::vector<std::string> files,
               std::vector<int64_t> offsets, Compression compression,
               size_t buffer, FileSizes sizes)
      : Dataset({{DType::kString}, {Shape()}}),
        format_(format),
        files_(std::move(files)),
        offsets_(std::move(offsets)),
        compression_(compression),
        buffer_(buffer),
        sizes_(sizes) {}
  StringView kind() const override {
    switch (format_) {
      case Format::kRecords:
        return "TFRecord";
      case Format::kLines:
        return "TextLine";
      default:
        return "FixedLengthRecordV2";
    }
  }

  bool reads_files() const override { return true; }

  class Iterator : public IteratorOf<FilesDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Start(PullContext& c) override {
      shard_ = c.files;
      index_ = shard_.index;
      const auto files = static_cast<int64_t>(dataset().files_.size());
      if (shard_.count <= std::max<int64_t>(files, 1)) return OkStatus();
      return InvalidArgument(
          "Could not apply FILE based sharding: the dataset only has ", files,
          " file(s), which is not enough for the required ", shard_.count,
          " shards/workers. If you are using datasets with distribution "
          "strategy, consider setting the auto sharding policy to either DATA "
          "or OFF using the `experimental_distribute.auto_shard_policy` option "
          "of `tf.data.Options()`.");
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        if (!file_) {
          *end = index_ >= static_cast<int64_t>(dataset().files_.size());
          if (*end) return OkStatus();
          // A file that cannot be opened or read is passed over by the next
          // call, so that IgnoreErrors goes on behind it.
          if (Status s = Open(0); !s.ok()) {
            Close();
            return s;
          }
        }
        StatusOr<bool> more = Read();
        if (!more.ok()) {
          Close();
          return more.status();
        }
        if (*more) {
          Tensor t = Tensor::Scalar<std::string>(std::move(record_));
          record_.clear();
          out->assign(1, std::move(t));
          return OkStatus();
        }
        Close();
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "current_file_index", index_);
      if (file_) w.PutInt(prefix(), OffsetKey(), Offset());
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(index_, r.GetInt(prefix(), "current_file_index"));
      int64_t offset = -1;
      if (r.Has(prefix(), OffsetKey())) {
        HR_ASSIGN_OR_RETURN(offset, r.GetCount(prefix(), OffsetKey()));
      }
      file_.reset();
      if (index_ < 0 ||
          (index_ > static_cast<int64_t>(dataset().files_.size()) &&
           shard_.count == 1)) {
        return DamagedState(prefix());
      }
      if (offset < 0 ||
          index_ >= static_cast<int64_t>(dataset().files_.size())) {
        return OkStatus();
      }
      return Open(offset);
    }

   private:
    StringView OffsetKey() const {
      return dataset().format_ == Format::kRecords ? "offset" : "current_pos";
    }
    int64_t Offset() const {
      return records_ ? static_cast<int64_t>(records_->offset())
                      : source_->offset();
    }
    void Close() {
      records_.reset();
      source_.reset();
      file_.reset();
      index_ += shard_.count;
    }
    Status Open(int64_t offset) {
      const FilesDataset& d = dataset();
      std::string path;
      HR_ASSIGN_OR_RETURN(FileSystem * fs,
                          FileSystemFor(d.files_[index_], &path));
      HR_ASSIGN_OR_RETURN(file_, fs->OpenToRead(path));
      if (d.format_ == Format::kRecords) {
        records_ = std::make_unique<RecordReader>(file_.get(), d.compression_);
        // byte_offsets say where the first record begins, and count for files
        // read from the front only.
        if (offset == 0 && !d.offsets_.empty()) offset = d.offsets_[index_];
        return offset > 0 ? records_->Seek(static_cast<uint64_t>(offset))
                          : OkStatus();
      }
      source_ = std::make_unique<BufferedSource>(file_.get(), d.compression_,
                                                 d.buffer_);
      // Of compressed files the length of the contents is not known before they
      // are read.
      if (d.format_ == Format::kFixed && d.compression_ == Compression::kNone) {
        HR_RETURN_IF_ERROR(CheckBody());
      }
      // A saved place is behind the header already.
      return source_->Skip(offset > 0 ? offset : d.sizes_.header);
    }
    Status CheckBody() const {
      const FileSizes& s = dataset().sizes_;
      const int64_t body =
          static_cast<int64_t>(file_->size()) - s.header - s.footer;
      if (body >= 0 && body % s.record == 0) return OkStatus();
      return InvalidArgument(
          "Excluding the header (", s.header, " bytes) and footer (", s.footer,
          " bytes), input file \"", dataset().files_[index_],
          "\" has body length ", body,
          " bytes, which is not an exact multiple of the record length (",
          s.record, " bytes).");
    }
    StatusOr<bool> Read() {
      if (records_) return records_->Next(&record_);
      return dataset().format_ == Format::kLines ? ReadLine() : ReadFixed();
    }
    StatusOr<bool> ReadLine() {
      // Bytes that were searched before are not searched again: a long line
      // would take quadratic time.
      size_t looked = 0;
      while (true) {
        const StringView held = source_->held();
        const size_t at = held.find('\n', looked);
        if (at != StringView::npos) {
          SetLine(held.substr(0, at));
          source_->Consume(at + 1);
          return true;
        }
        looked = held.size();
        HR_ASSIGN_OR_RETURN(const bool more, source_->Fill());
        if (more) continue;
        // The last line need not end with a line end.
        if (source_->held().empty()) return false;
        SetLine(source_->held());
        source_->Consume(source_->held().size());
        return true;
      }
    }
    void SetLine(StringView line) {
      // Lines of Windows, as upstream reads them.
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      record_.assign(line.data(), line.size());
    }
    StatusOr<bool> ReadFixed() {
      const FileSizes& s = dataset().sizes_;
      // What follows must be more than the footer alone.
      while (static_cast<int64_t>(source_->held().size()) <
             s.record + s.footer) {
        HR_ASSIGN_OR_RETURN(const bool more, source_->Fill());
        if (more) continue;
        const int64_t left = static_cast<int64_t>(source_->held().size());
        if (left == s.footer) return false;
        return DataLoss("input file \"", dataset().files_[index_],
                        "\" ends in the middle of a record: ", left,
                        " bytes are left where records have ", s.record,
                        " and the footer ", s.footer);
      }
      const StringView held = source_->held();
      record_.assign(held.data(), static_cast<size_t>(s.record));
      source_->Consume(static_cast<size_t>(s.record));
      return true;
    }

    int64_t index_ = 0;
    FileShard shard_;
    std::unique_ptr<RandomAccessFile> file_;
    std::unique_ptr<RecordReader> records_;
    std::unique_ptr<BufferedSource> source_;
    std::string record_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Format format_;
  const std::vector<std::string> files_;
  const std::vector<int64_t> offsets_;  // where to begin; empty: at the front
  const Compression compression_;
  const size_t buffer_;
  const FileSizes sizes_;
};

// What buffer_size 0 stands for; upstream's default.
constexpr int64_t kBuffer = 256 << 10;

Status MakeFiles(KernelContext& c, Format format, int compression, int buffer,
                 FileSizes sizes) {
  HR_ASSIGN_OR_RETURN(std::vector<std::string> files,
                      TextsInput(c, 0, "filenames"));
  HR_ASSIGN_OR_RETURN(const StreamFormat stream,
                      StreamInputs(c, compression, buffer, kBuffer));
  std::vector<int64_t> offsets;
  const ArgRange range = c.op().input_range("byte_offsets");
  if (range.size() == 1) {
    const auto given = c.input(range.begin).span<int64_t>();
    offsets.assign(given.begin(), given.end());
    if (!offsets.empty() && offsets.size() != files.size()) {
      return InvalidArgument(
          "`byte_offsets` must be of same size as `filenames`");
    }
    for (int64_t o : offsets) {
      if (o < 0) return InvalidArgument("`byte_offsets` must not be negative");
    }
  }
  return SetDataset<FilesDataset>(c, format, std::move(files),
                                  std::move(offsets), stream.compression,
                                  stream.buffer, sizes);
}

Status MakeRecords(KernelContext& c) {
  return MakeFiles(c, Format::kRecords, 1, 2, {});
}

Status MakeLines(KernelContext& c) {
  return MakeFiles(c, Format::kLines, 1, 2, {});
}

Status MakeFixed(KernelContext& c) {
  FileSizes s;
  HR_ASSIGN_OR_RETURN(s.header, IntInput(c, 1, "header_bytes"));
  HR_ASSIGN_OR_RETURN(s.record, IntInput(c, 2, "record_bytes"));
  HR_ASSIGN_OR_RETURN(s.footer, IntInput(c, 3, "footer_bytes"));
  if (s.header < 0) return InvalidArgument("header_bytes must be >= 0");
  if (s.record <= 0) return InvalidArgument("record_bytes must be > 0");
  if (s.footer < 0) return InvalidArgument("footer_bytes must be >= 0");
  // ReadFixed adds these sizes.
  int64_t sum;
  if (__builtin_add_overflow(s.header, s.record, &sum) ||
      __builtin_add_overflow(sum, s.footer, &sum)) {
    return InvalidArgument("record_bytes are too many");
  }
  return MakeFiles(c, Format::kFixed, 5, 4, s);
}

HR_OP(TFRecordDataset)
    .Traits({kReadsFiles})
    .Input("filenames: string")
    .Input("compression_type: string")
    .Input("buffer_size: int64")
    .Output("handle: variant")
    .Attr("metadata: string = ''")
    .Doc("The records of TFRecord files.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRecords>);

HR_OP(TFRecordDatasetV2)
    .Traits({kReadsFiles})
    .Input("filenames: string")
    .Input("compression_type: string")
    .Input("buffer_size: int64")
    .Input("byte_offsets: int64")
    .Output("handle: variant")
    .Attr("metadata: string = ''")
    .Doc("The records of TFRecord files, from given places on.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRecords>);

HR_OP(TextLineDataset)
    .Traits({kReadsFiles})
    .Input("filenames: string")
    .Input("compression_type: string")
    .Input("buffer_size: int64")
    .Output("handle: variant")
    .Attr("metadata: string = ''")
    .Doc("The lines of text files.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeLines>);

HR_OP(FixedLengthRecordDatasetV2)
    .Traits({kReadsFiles})
    .Input("filenames: string")
    .Input("header_bytes: int64")
    .Input("record_bytes: int64")
    .Input("footer_bytes: int64")
    .Input("buffer_size: int64")
    .Input("compression_type: string")
    .Output("handle: variant")
    .Attr("metadata: string = ''")
    .Doc("The records, all of one size, of files.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeFixed>);

HR_OP(FixedLengthRecordDataset)
    .Traits({kReadsFiles})
    .Input("filenames: string")
    .Input("header_bytes: int64")
    .Input("record_bytes: int64")
    .Input("footer_bytes: int64")
    .Input("buffer_size: int64")
    .Output("handle: variant")
    .Attr("metadata: string = ''")
    .Doc("The records, all of one size, of files.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeFixed>);

}  // namespace
}  // namespace headrace
